/** The name of a stream is its kind and an id, `gift-0a1b…`; no kind holds a dash, an id may. */

/** What stands before a stream's first dash: `gift-0a1b…` is a `gift`. Kinds are few, streams are not. */
export function kindOf(stream: string): string {
  const dash = stream.indexOf('-');
  return dash < 0 ? stream : stream.slice(0, dash);
}

/** What stands after it: whose stream it is. */
export const idOf = (stream: string): string => stream.slice(stream.indexOf('-') + 1);
