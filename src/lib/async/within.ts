/** The promise's outcome, or after `ms` that of `late`. The late promise runs on, and its outcome is ignored. */
export async function within<T, L>(promise: Promise<T>, ms: number, late: () => L | Promise<L>): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([promise, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
