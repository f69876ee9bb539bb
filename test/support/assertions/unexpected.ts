/** For callbacks that no test expects to be called: ends the test's process with the error, so that the file fails. */
export function unexpected(error: Error): never {
  throw error;
}
