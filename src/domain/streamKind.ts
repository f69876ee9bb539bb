/** What stands before a stream's first dash: `gift-0a1b…` is a `gift`. Kinds are few, streams are not. */
export function kindOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}
