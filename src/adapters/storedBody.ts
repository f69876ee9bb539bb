import type { Body, UnreadableBody } from '../ports/readStore.js';

export function storedBodyOf(text: string): Body {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    // The parser's message repeats text, which may be personal.
    return unreadable(`no JSON${/ at position \d+/.exec((error as Error).message)?.[0] ?? ''}`);
  }
  return typeof body === 'object' && body !== null ? body : unreadable('no JSON object');
}

function unreadable(cause: string): UnreadableBody {
  return { $unreadable: `what is stored is damaged: ${cause}` };
}
