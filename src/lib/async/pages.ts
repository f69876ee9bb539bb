/**
 * What a store lists in pages of `size` items. `read` reads the page after an item, or the first one; a page with fewer
 * items is the last.
 */
export async function* pages<T>(
  size: number,
  read: (last: T | undefined) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[], void> {
  for (let last: T | undefined; ;) {
    const page = await read(last);
    if (page.length > 0) yield page;
    if (page.length < size) return;
    last = page.at(-1);
  }
}
