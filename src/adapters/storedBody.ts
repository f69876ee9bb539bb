/** The body of a stored document, from its text. */
import type { Body, UnreadableBody } from '../ports/readStore.js';

/** What the text says; an `UnreadableBody` where it is no document's, since it was damaged where it is stored. */
export function storedBodyOf(text: string): Body {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    // The parser's message has some of the text in it, which may be personal.
    return unreadable(`no JSON${/ at position \d+/.exec((error as Error).message)?.[0] ?? ''}`);
  }
  return typeof body === 'object' && body !== null ? body : unreadable('no JSON object');
}

function unreadable(cause: string): UnreadableBody {
  return { $unreadable: `what is stored is damaged: ${cause}` };
}
