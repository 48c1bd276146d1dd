// SPDX-License-Identifier: MIT
// The page's Content-Security-Policy forbids <style> elements and style attributes. The editor and the terminal make
// both. What they put there comes from their own code, so it is given to the browser by the ways that the policy
// leaves to scripts: style sheets that are objects, and the style object of an element.

function styleElement() {
    const element = document.createElementNS('http://www.w3.org/1999/xhtml', 'span');
    const sheet = new CSSStyleSheet();
    const remove = () => { document.adoptedStyleSheets = document.adoptedStyleSheets.filter(s => s !== sheet); };
    let text = '';
    element.hidden = true;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, 'textContent', {
        get: () => text,
        set: value => { sheet.replaceSync(text = value); },
    });
    element.remove = () => {
        remove();
        Element.prototype.remove.call(element);
    };
    return element;
}

export function keepStylesOut() {
    const create = document.createElement.bind(document);
    const set = Element.prototype.setAttribute;
    document.createElement = (name, options) => name === 'style' ? styleElement() : create(name, options);
    Element.prototype.setAttribute = function (name, value) {
        if (name === 'style') this.style.cssText = value;
        else set.call(this, name, value);
    };
}
