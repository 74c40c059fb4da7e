// Fill the version menu, if the parent folder contains a versions.js that lists other versions.
function showVersions(versions) {
  const select = document.querySelector(".versions select");
  const page = document.querySelector(".versions").dataset.page;
  const root = document.documentElement.dataset.content_root;
  for (const version of versions.filter((name) => name !== select.value)) {
    select.add(new Option(version, `${root}../${version}/${page}`));
  }
  select.disabled = select.options.length < 2;
  select.addEventListener("change", () => { location.href = select.value; });
}
addEventListener("DOMContentLoaded", () => {
  const list = document.createElement("script");
  list.src = `${document.documentElement.dataset.content_root}../versions.js`;
  document.head.append(list);
});
