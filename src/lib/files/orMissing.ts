/** What reading a file or folder gives; `missing` where it does not exist. @throws the file system's other errors */
export async function orMissing<T, M>(reading: Promise<T>, missing: M): Promise<T | M> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return missing;
    throw error;
  }
}
