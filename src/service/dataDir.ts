import { realpathSync } from 'node:fs';
import { EngineError } from '../lib/engineError.js';
import { exhausted } from '../lib/files/folderErrors.js';
import { makeFolder } from '../lib/files/folders.js';

/**
 * Most bytes of the data folder's path. SQLite limits paths to 512 bytes, links followed (`MAX_PATHNAME`), and file
 * names in the folder have up to 30.
 */
const LONGEST = 470;

/**
 * Makes the data folder (mode 0700) and its parents. @returns whether it was new. @throws EngineError naming DATA_DIR
 */
export function makeDataDir(dataDir: string): boolean {
  const made = makeOrRefuse(dataDir);
  const bytes = Buffer.byteLength(realpathSync(dataDir));
  if (bytes > LONGEST)
    throw new EngineError(
      'DATA_DIR',
      `the path of ${dataDir} has ${bytes} bytes, links followed, and SQLite takes at most ${LONGEST} of a folder: name one with a shorter path`,
    );
  return made;
}

function makeOrRefuse(dataDir: string): boolean {
  try {
    return makeFolder(dataDir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'a file stands there' : `it can't be made (${code})`;
    throw new EngineError(
      'DATA_DIR',
      `${dataDir} is not a folder that can be used: ${why}; ${exhausted(dataDir) ?? 'name another one, or see that this user may write there'}`,
      error,
    );
  }
}
