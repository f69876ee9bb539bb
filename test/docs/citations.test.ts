/**
 * Citations lead somewhere: a heading of a document that code, tests or other documents name is there, and so is the
 * target of every link between documents. Nothing rests on files beside the repository, but for one setting of tests.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: citations');

/** What is made, fetched or not ours. */
const LEFT_OUT = new Set(['.git', 'coverage', 'data', 'dist', 'node_modules']);

/** The repository's texts that may cite, by their paths. */
function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesBelow(path);
    return /\.(ts|mjs|md|yml|json|service)$|^\.ci\/|^Dockerfile$/.test(path) ? [path] : [];
  });
}

const TEXTS = new Map(filesBelow('').map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));

const withoutBlocks = (text: string): string => text.replaceAll(/^```\w*\n[^]*?^```$/gm, '');

/** The anchors that GitHub gives the headings of a document: of headings that are the same, the later ones count up. */
function anchorsIn(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of withoutBlocks(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const shown = title.trim().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    const anchor = shown
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let same = 1; anchors.has(unique); same++) unique = `${anchor}-${same}`;
    anchors.add(unique);
  }
  return anchors;
}

const ANCHORS = new Map(
  [...TEXTS].filter(([file]) => file.endsWith('.md')).map(([file, text]) => [file, anchorsIn(text)]),
);

/** Why there is no such place; `undefined`: there is. */
function missing(document: string, anchor: string | undefined): string | undefined {
  if (!existsSync(join(ROOT, document))) return `no ${document}`;
  if (anchor === undefined || !document.endsWith('.md')) return undefined;
  return ANCHORS.get(document)?.has(anchor) === true ? undefined : `${document} has no heading #${anchor}`;
}

/** Documents and headings that a text cites, from the repository's own folder, and that are not there. */
function wrongCitations(text: string): string[] {
  return [...text.matchAll(/(?<![\w/-])(docs\/[\w./-]+\.md)(?:#([\p{L}\p{N}_-]+))?/gu)].flatMap(
    ([, document = '', anchor]) => missing(document, anchor) ?? [],
  );
}

/** Links of a document, relative to it, that lead nowhere. */
function wrongLinks(file: string, text: string): string[] {
  return [...withoutBlocks(text).matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(
    ([, target = '', anchor]) => missing(target === '' ? file : normalize(join(dirname(file), target)), anchor) ?? [],
  );
}

const wrong = (find: (file: string, text: string) => readonly string[], only = /./): string[] =>
  [...TEXTS].flatMap(([file, text]) => (only.test(file) ? find(file, text).map((fault) => `${file}: ${fault}`) : []));

test('every heading that is cited exists', () => {
  assert.equal(
    wrong((_, text) => wrongCitations(text)),
    [],
  );
});

test('every link between documents leads to a heading or a file', () => {
  const headings = [...ANCHORS].flatMap(([file, anchors]) => (file.startsWith('docs/api/') ? [...anchors] : []));
  assert.ok(headings.length > 100, String(headings.length));
  assert.equal(wrong(wrongLinks, /\.md$/), []);
});

test('a citation of a heading or document that there is not is found', () => {
  const page = (name: string): string => ['docs', name].join('/');
  const cite = (name: string, anchor?: string): string =>
    `// As it stands in ${page(name)}${anchor === undefined ? '' : `#${anchor}`}.`;
  assert.equal(wrongCitations(cite('api/errors.md', 'codes')), []);
  assert.equal(wrongCitations(cite('api/errors.md')), []);
  assert.equal(wrongCitations(cite('api/errors.md', 'err')), [`${page('api/errors.md')} has no heading #err`]);
  assert.equal(wrongCitations(cite('nothing.md', 'errors')), [`no ${page('nothing.md')}`]);
  assert.equal(wrongCitations(cite('api/nothing.md')), [`no ${page('api/nothing.md')}`]);
  assert.equal(wrongLinks('docs/design.md', '[a](api/errors.md#codes) [b](#layers) [c](../README.md)'), []);
  assert.equal(wrongLinks('docs/design.md', '[a](api/errors.md#layers) [b](#errors) [c](README.md)'), [
    `${page('api/errors.md')} has no heading #layers`,
    `${page('design.md')} has no heading #errors`,
    `no ${page('README.md')}`,
  ]);
});

test('one file alone names the folder beside the repository, as the default of a setting', () => {
  const beside = ['..', 'shared'].join('/');
  const naming = [...TEXTS].filter(([, text]) => text.includes(beside));
  assert.ok(naming.length <= 1, naming.map(([file]) => file).join(', '));
  for (const [file, text] of naming) assert.match(text, 'TEST_MONGODB_SERVER', file);
});

test.run();
