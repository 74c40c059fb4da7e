"use strict";
// Bokeh's JavaScript creates style elements. The page's policy allows only those with its nonce.
{
  const number = document.currentScript.nonce;
  const plain = Document.prototype.createElement;
  Document.prototype.createElement = function (...what) {
    const made = plain.apply(this, what);
    if (made.localName === "style") made.nonce = number;
    return made;
  };
}
