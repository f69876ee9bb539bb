/**
 * `npm run size` prints the code tokens of each room of `src`, and of all, so that growth is seen: comments do not
 * count, names and lines count whatever their length. The scanner is TypeScript's, run over each file's text.
 */
import { readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { SyntaxKind } from 'typescript/unstable/ast';
import { createScanner } from 'typescript/unstable/ast/scanner';
import { root } from './build.mjs';
import { filesBelow } from './filesBelow.mjs';

function tokensOf(text) {
  const scanner = createScanner(true, 0, text);
  let tokens = 0;
  for (let end = 0; scanner.scan() !== SyntaxKind.EndOfFile; end = scanner.getTokenEnd()) {
    tokens += 1;
    // The scanner stays at a `#` that begins no name.
    if (scanner.getTokenEnd() === end) scanner.resetTokenState(end + 1);
  }
  return tokens;
}

const rooms = new Map();
const src = join(root, 'src');
for (const file of filesBelow(src).filter((one) => one.endsWith('.ts'))) {
  const [room] = file.split(sep);
  rooms.set(room, (rooms.get(room) ?? 0) + tokensOf(readFileSync(join(src, file), 'utf8')));
}
const total = [...rooms.values()].reduce((sum, tokens) => sum + tokens, 0);
for (const [room, tokens] of [...rooms].toSorted(([, one], [, other]) => other - one).concat([['src', total]]))
  console.log(`${String(tokens).padStart(8)}  ${room}`);
