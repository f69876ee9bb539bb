/**
 * What the documents name is there: commands and their options, settings, routes, scripts, benches, files; and no
 * command, setting or route goes unsaid.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { suite } from 'uvu';
import { ERRORS } from '../../src/domain/errors.js';
import { program } from '../../src/cli/program.js';
import { ConfigError, loadConfig } from '../../src/service/config.js';
import { type Json, startService } from '../support/service/service.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('documents');

const FILES = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'examples/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).flatMap((name) =>
    name.endsWith('.md') ? [`docs/${name}`] : [],
  ),
];
const TEXTS = new Map(FILES.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
const ALL = [...TEXTS.values()].join('\n');
/** What users read to know what there is; the changelog only says which release has it. */
const GUIDES = [...TEXTS]
  .filter(([file]) => file === 'README.md' || file.startsWith('docs/'))
  .map(([, text]) => text)
  .join('\n');

/**
 * Code as it stands in a text: what is between backticks, and the lines of its blocks; of a console what is typed, not
 * what it shows.
 */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].flatMap(([, kind, block = '']) =>
    block.split('\n').filter((line) => kind !== 'console' || line.startsWith('$ ')),
  );
  const spans = [...text.replaceAll(/^```\w*\n[^]*?^```$/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  return [...blocks, ...spans];
}

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const gift = program({
  stdin: Readable.from([]),
  stdout: nowhere,
  stderr: nowhere,
  env: {},
  signal: new AbortController().signal,
});

/** The commands that do something, by what is typed for them. */
function leaves(command: Command, path: string): Map<string, Command> {
  if (command.commands.length === 0) return new Map([[path, command]]);
  return new Map(command.commands.flatMap((inner) => [...leaves(inner, `${path} ${inner.name()}`)]));
}

/** The command lines of `gift` within code; options are cut off at whatever ends a command in a shell. */
function commandLinesIn(code: string): string[] {
  return [...code.matchAll(/(?<![\w./-])gift ([a-z-][^|;>&]*)/g)].map(([, line = '']) => line.trim());
}

/** What is wrong with a command line; `undefined`: nothing. */
function faultOf(line: string): string | undefined {
  const words = line.split(/\s+/);
  let command = gift;
  while (command.commands.length > 0) {
    const word = words.shift();
    if (word === undefined || word.startsWith('-') || word === '…') break;
    const inner = command.commands.find((one) => one.name() === word);
    if (inner === undefined) return `no command ${word}`;
    command = inner;
  }
  const known = new Set(['--help', '--version', ...command.options.map(({ long }) => long)]);
  const unknown = words
    .map((word) => word.replaceAll(/[`"'.,:)=].*$/g, ''))
    .find((word) => word.startsWith('--') && !known.has(word));
  return unknown === undefined ? undefined : `no option ${unknown}`;
}

const MESSAGES = new Set<string>(Object.values(ERRORS).map(([, message]) => message));

test('every command and option that is named exists', () => {
  let found = 0;
  for (const [file, text] of TEXTS) {
    for (const code of codeOf(text)) {
      if (MESSAGES.has(code)) continue;
      for (const line of commandLinesIn(code)) {
        found += 1;
        assert.equal(faultOf(line), undefined, `${file}: ${code}`);
      }
    }
  }
  assert.ok(found > 40, String(found));
  assert.deepEqual(['history X --as-of T', 'history X --nonsense', 'audit nonsense', 'nonsense'].map(faultOf), [
    undefined,
    'no option --nonsense',
    'no command nonsense',
    'no command nonsense',
  ]);
});

test('every command stands in the README or a guide', () => {
  const paths = [...leaves(gift, 'gift').keys()];
  assert.ok(paths.length > 10);
  assert.deepEqual(
    paths.filter((path) => !GUIDES.includes(path)),
    [],
  );
});

test('the page of settings names those that are read, and all of them', () => {
  const read = new Set<string>();
  const env = new Proxy<Record<string, string>>(
    { PAYMENTS: 'stripe', NOTIFICATIONS: 'real', EVENTSTORE_URL: 'esdb://h' },
    {
      get(target, name) {
        if (typeof name === 'string') read.add(name);
        return Reflect.get(target, name) as string;
      },
    },
  );
  assert.throws(() => loadConfig(env), ConfigError);
  const table =
    TEXTS.get('docs/settings.md')
      ?.split('\n')
      .filter((line) => /^\| `[A-Z]/.test(line)) ?? [];
  const said = new Set(
    table.flatMap((line) =>
      [...(line.split(' | ')[0] ?? '').matchAll(/`([A-Z][A-Z_0-9]+)`/g)].map(([, name = '']) => name),
    ),
  );
  const own = (names: ReadonlySet<string>): string[] =>
    [...names].filter((name) => !name.startsWith('OTEL_')).toSorted();
  assert.deepEqual(own(said), own(read));
  for (const name of read)
    if (name.startsWith('OTEL_')) assert.ok(TEXTS.get('docs/deployment.md')?.includes(`\`${name}`), name);
  for (const line of readFileSync(join(ROOT, '.env.example'), 'utf8').matchAll(/^# ([A-Z_]+)=/gm))
    assert.ok(said.has(line[1] ?? '') || line[1] === 'LISTEN', line[1]);
});

test('every route that is named exists, and every route under /ops is named', async () => {
  const service = await startService({ split: false, env: { SANDBOX: '1' } });
  let document: Json;
  try {
    document = (await service.ask('GET', '/openapi.json')).json;
  } finally {
    await service.close();
  }
  const shape = (path: string): string =>
    path
      .replace(/[?#].*$/, '')
      .replaceAll(/\{[^}]*\}|:\w+/g, '{}')
      .replace(/\/$/, '');
  const routes = new Set(
    Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${shape(path)}`),
    ),
  );
  const named = new Set(
    [...ALL.matchAll(/`(GET|POST|PATCH|DELETE|PUT) (\/[^`\s]+)`/g)].map(
      ([, method = '', path = '']) => `${method} ${shape(path)}`,
    ),
  );
  assert.ok(named.size > 10, String(named.size));
  // The description itself, and what is there only where its provider is set.
  const outside = new Set(['GET /openapi.json', 'POST /webhooks/stripe', 'POST /webhooks/twilio']);
  assert.deepEqual(
    [...named].filter((one) => !one.includes('…') && !routes.has(one) && !outside.has(one)),
    [],
  );
  // A resource's path, or one that ends in dots, names all that stands below.
  const said = [...ALL.matchAll(/`(?:[A-Z]+ )?(\/ops\/[^`\s]+)`/g)].map(([, path = '']) =>
    shape(path.replace(/…$/, '')),
  );
  assert.deepEqual(
    [...routes]
      .map((one) => one.split(' ')[1] ?? '')
      .filter((path) => path.startsWith('/ops/') && !said.some((one) => path === one || path.startsWith(`${one}/`))),
    [],
  );
});

test('scripts, benches and files that are named exist, and so do the chapters of links', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const [file, text] of TEXTS) {
    const where = (what: string): string => `${file}: ${what}`;
    for (const [what, name = ''] of text.matchAll(/npm run ([a-z]+)/g)) assert.ok(name in scripts, where(what));
    for (const [what, name = ''] of text.matchAll(/npm run bench -- ([a-z0-9-]+)/g))
      assert.ok(existsSync(join(ROOT, 'bench', `${name}.ts`)), where(what));
    for (const [what, target = '', anchor] of text.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)) {
      const path = target === '' ? join(ROOT, file) : join(ROOT, dirname(file), target);
      assert.ok(existsSync(path), where(what));
      if (anchor === undefined) continue;
      const chapters = [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      );
      assert.ok(chapters.includes(anchor), where(what));
    }
    for (const [what, path = ''] of text.matchAll(/`((?:src|test|bench|deploy|docs|scripts)\/[\w./*-]*)`/g))
      assert.ok(stands(path), where(what));
  }
  for (const file of readdirSync(join(ROOT, 'scripts'))) {
    for (const [what, path = ''] of readFileSync(join(ROOT, 'scripts', file), 'utf8').matchAll(
      /`((?:src|test|bench|scripts)\/[\w./*-]*)`/g,
    ))
      assert.ok(stands(path), `scripts/${file}: ${what}`);
  }
  // Messages of the program send their readers to chapters, too.
  for (const [, title = ''] of readFileSync(join(ROOT, 'src/cli/backup.ts'), 'utf8').matchAll(
    /see "([^"]+)" in docs\/deployment\.md/g,
  )) {
    assert.ok(TEXTS.get('docs/deployment.md')?.includes(`## ${title}\n`), title);
  }
});

test('the list of benches says of each what it measures, in whole sentences', () => {
  const lines = execFileSync(process.execPath, [join(ROOT, 'scripts/bench.mjs')], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .slice(1);
  assert.equal(lines.length, readdirSync(join(ROOT, 'bench')).filter((file) => file.endsWith('.ts')).length);
  assert.deepEqual(
    lines.filter((line) => !/^ {2}[\w-]+ +[A-Z].{20,}\.$/.test(line)),
    [],
  );
});

/** A file, a folder, or some file whose name fits a `*`. */
function stands(path: string): boolean {
  if (!path.includes('*')) return existsSync(join(ROOT, path));
  const pattern = new RegExp(
    `^${path
      .slice(path.lastIndexOf('/') + 1)
      .replaceAll('.', '\\.')
      .replaceAll('*', '.*')}$`,
  );
  return readdirSync(join(ROOT, dirname(path))).some((name) => pattern.test(name));
}

test('the README says what each folder of the source is for', () => {
  const folders = readdirSync(join(ROOT, 'src')).map((name) => `src/${name}/ `);
  assert.ok(folders.length > 8);
  assert.deepEqual(
    folders.filter((folder) => TEXTS.get('README.md')?.includes(`\n${folder}`) !== true),
    [],
  );
});

test('nothing is said of the machine that it was written on', () => {
  for (const [file, text] of TEXTS) assert.doesNotMatch(text, /\/(?:home|root|work|tmp|Users)\//, file);
});

test.run();
