/** Compares texts by the bytes of their UTF-8, as engines and ports do; UTF-16 order differs beyond U+D7FF. */
export function byBytes(one: string, other: string): number {
  if (one === other) return 0;
  const beyond = /[\ud800-\uffff]/;
  if (!beyond.test(one) && !beyond.test(other)) return one < other ? -1 : 1;
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
