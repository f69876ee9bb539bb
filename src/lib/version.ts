import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from './packageRoot.js';

/** This release, as package.json names it. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8')) as { readonly version: string }
).version;
