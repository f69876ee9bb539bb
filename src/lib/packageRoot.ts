import { existsSync } from 'node:fs';

/** The nearest parent folder with a package.json: bundled files lie less deep than compiled ones. */
function packageRoot(): URL {
  for (let at = new URL('./', import.meta.url); ; at = new URL('../', at))
    if (existsSync(new URL('package.json', at)) || at.pathname === '/') return at;
}

/** The folder that holds package.json and the examples. */
export const PACKAGE_ROOT = packageRoot();
