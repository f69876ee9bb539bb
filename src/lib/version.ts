import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from './packageRoot.js';

/** This release, as package.json names it. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8')) as { readonly version: string }
).version;

/**
 * Refuses to run a thread whose files were loaded after those of its process, and are of another release.
 * @param version the release of the process
 * @throws Error
 */
export function refuseOtherRelease(version: string): void {
  if (version !== VERSION)
    throw new Error(
      `the thread is of release ${VERSION}, its process is of release ${version}: restart the service, whose release folder was replaced`,
    );
}
