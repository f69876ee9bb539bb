/** A deadline on a promise. */

/**
 * What the promise gives or throws; where that takes longer than `ms`, what `late` gives or throws instead. What the
 * promise comes to afterwards is of no interest to anybody: what it stands for goes on all the same.
 */
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
