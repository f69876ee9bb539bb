/** The data folder: made where there is none. */
import { mkdirSync } from 'node:fs';
import { EngineError } from './adapters/engineError.js';

/** Makes the folder (mode 0700) and those above it. @throws EngineError naming DATA_DIR where that can't be done */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'a file stands there' : `it can't be made (${code})`;
    throw new EngineError('DATA_DIR', `${dataDir} is no folder that can be used: ${why}; name another one, or see that this user may write there`, error);
  }
}
