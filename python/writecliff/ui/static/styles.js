"use strict";
// Bokeh's JavaScript writes style elements. The page's policy lets only those with its number in.
{
  const number = document.currentScript.nonce;
  const plain = Document.prototype.createElement;
  Document.prototype.createElement = function (...what) {
    const made = plain.apply(this, what);
    if (made.localName === "style") made.nonce = number;
    return made;
  };
}
