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

/** Kinds of tokens after which a `/` divides; after any other it begins a regular expression. */
const OPERANDS = new Set([
  SyntaxKind.Identifier,
  SyntaxKind.NumericLiteral,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
]);

function tokensOf(text) {
  const scanner = createScanner(true, 0, text);
  /** The open braces; true: of a template, which goes on behind its `}`. */
  const braces = [];
  let tokens = 0;
  let before;
  for (let end = 0; ; end = scanner.getTokenEnd()) {
    let kind = scanner.scan();
    // A parser tells the scanner what only the syntax knows.
    if (kind === SyntaxKind.CloseBraceToken && braces.pop() === true) kind = scanner.reScanTemplateToken(false);
    else if (kind === SyntaxKind.SlashToken && !OPERANDS.has(before)) kind = scanner.reScanSlashToken();
    if (kind === SyntaxKind.EndOfFile) return tokens;
    if (kind === SyntaxKind.TemplateHead || kind === SyntaxKind.TemplateMiddle) braces.push(true);
    else if (kind === SyntaxKind.OpenBraceToken) braces.push(false);
    tokens += 1;
    before = kind;
    // The scanner stays at a `#` that begins no name.
    if (scanner.getTokenEnd() === end) scanner.resetTokenState(end + 1);
  }
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
