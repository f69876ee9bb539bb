/** Work that changes a read model's builds, recorded before anything is done and afterwards. */
import type { StartedOperation } from '../../commands/recordAccess.js';

/**
 * Runs work whose record was appended before, and appends whether it was done. `shown`: the records that its result
 * shows.
 * @throws whatever `work` throws: a missing end of the record shows the failure, too
 */
export async function recordedWork<T>(
  record: StartedOperation,
  work: () => Promise<T>,
  shown: (result: T) => number = () => 1,
): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await record.end(0, null, false).catch(() => undefined);
    throw error;
  }
  await record.end(shown(result), null, true);
  return result;
}
