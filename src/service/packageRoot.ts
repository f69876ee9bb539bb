/**
 * The project's own folder: package.json and examples stand there. Compiled files and the files put together of them
 * (`scripts/build.mjs`) both lie two folders below.
 */
export const PACKAGE_ROOT = new URL('../../../', import.meta.url);
