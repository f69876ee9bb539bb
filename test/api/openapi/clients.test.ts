/** Checkers and generators that others wrote take the description; what they make of it buys and redeems a gift. */
import { execFile, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { skipSuite, testWhere } from '../../support/assertions/testWhere.js';
import { type Service, startService } from '../../support/service/service.js';

const run = promisify(execFile);

const CLIENTS = resolve('test/clients');
const MODULES = join(CLIENTS, 'node_modules');
const NAME = 'the description, to programs of others';

if (existsSync(MODULES)) checked();
else skipSuite(NAME, 'npm ci --prefix test/clients was not run');

/** What the programs of `test/clients` print. */
const BOUGHT_AND_REDEEMED = { redemption: true, status: 'redeemed', unknown: 'gift not found' };

/** With a fault, and soon looked through. */
const EMPTY = { servers: [], paths: {}, webhooks: {}, components: {}, tags: [] };

interface Fault {
  readonly rule: string;
  readonly message: string;
  readonly at: string;
}

interface Redocly {
  createConfig(this: void, rules: { readonly extends: readonly string[] }): Promise<object>;
  lintFromString(
    this: void,
    requested: { readonly source: string; readonly absoluteRef: string; readonly config: object },
  ): Promise<
    readonly {
      readonly ruleId: string;
      readonly message: string;
      readonly location: readonly { readonly pointer?: string }[];
    }[]
  >;
}

interface SpectralCore {
  readonly Spectral: new () => {
    setRuleset(rules: { readonly extends: readonly unknown[] }): void;
    run(document: object): Promise<
      readonly {
        readonly code: string | number;
        readonly message: string;
        readonly path: readonly (string | number)[];
      }[]
    >;
  };
}

function checked(): void {
  const test = suite<{ service: Service; dir: string; document: object }>(NAME);
  const require = createRequire(join(CLIENTS, 'package.json'));

  test.before(async (context) => {
    context.dir = mkdtempSync(join(tmpdir(), 'clients-'));
    context.service = await startService({ split: false });
    context.document = (await context.service.ask('GET', '/openapi.json')).json as object;
    writeFileSync(join(context.dir, 'openapi.json'), JSON.stringify(context.document));
    writeFileSync(join(context.dir, 'package.json'), JSON.stringify({ type: 'module' }));
    symlinkSync(MODULES, join(context.dir, 'node_modules'));
  });
  test.after(async ({ service, dir }) => {
    await service.close();
    rmSync(dir, { recursive: true });
  });

  test('Redocly finds nothing by its strict rules, and what is wrong', async ({ document }) => {
    assert.equal(await redoclyFaults(document), []);
    const [fault] = await redoclyFaults({ ...document, ...EMPTY });
    assert.is(fault?.rule, 'no-empty-servers');
  });

  test('Spectral finds nothing by its recommended rules, and what is wrong', async ({ document }) => {
    assert.equal(await spectralFaults(document), []);
    const [fault] = await spectralFaults({ ...document, ...EMPTY });
    assert.is(fault?.rule, 'oas3-api-servers');
  });

  async function redoclyFaults(document: object): Promise<Fault[]> {
    const { createConfig, lintFromString } = require('@redocly/openapi-core') as Redocly;
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/openapi.json', config });
    return problems.map(({ ruleId, message, location }) => ({
      rule: ruleId,
      message,
      at: location[0]?.pointer ?? '',
    }));
  }

  async function spectralFaults(document: object): Promise<Fault[]> {
    const { Spectral } = require('@stoplight/spectral-core') as SpectralCore;
    const { oas } = require('@stoplight/spectral-rulesets') as { readonly oas: unknown };
    const spectral = new Spectral();
    spectral.setRuleset({ extends: [oas] });
    return (await spectral.run(document)).map(({ code, message, path }) => ({
      rule: String(code),
      message,
      at: path.join('/'),
    }));
  }

  test('a client by openapi-typescript compiles, buys and redeems', async ({ service, dir }) => {
    await run(bin('openapi-typescript'), ['openapi.json', '-o', 'description.d.ts'], { cwd: dir });
    assert.equal(await compiledAndRun(service, dir, 'openapiTypescript'), BOUGHT_AND_REDEEMED);
  });

  test('a client by hey-api compiles, buys and redeems', async ({ service, dir }) => {
    await run(bin('openapi-ts'), ['-i', 'openapi.json', '-o', 'client', '-c', '@hey-api/client-fetch'], { cwd: dir });
    assert.equal(await compiledAndRun(service, dir, 'heyApi'), BOUGHT_AND_REDEEMED);
  });

  const missing = ['kiota', 'dotnet'].filter((name) => spawnSync(name, ['--version']).status !== 0);
  testWhere(
    test,
    missing.length === 0,
    `${missing.join(' and ')} not on the path`,
    'a client by Kiota compiles, buys and redeems',
    async ({ service, dir }) => {
      const folder = join(dir, 'kiota');
      mkdirSync(folder);
      cpSync(join(CLIENTS, 'kiota'), folder, { recursive: true });
      const options = [
        '-l',
        'CSharp',
        '-d',
        '../openapi.json',
        '-c',
        'GiftClient',
        '-n',
        'Gift.Client',
        '-o',
        'client',
      ];
      await run('kiota', ['generate', ...options], { cwd: folder });
      await run('dotnet', ['build', '--verbosity', 'quiet', '-warnaserror'], { cwd: folder });
      const { stdout } = await run('dotnet', ['run', '--no-build'], { cwd: folder, env: envOf(service) });
      assert.equal(JSON.parse(stdout), BOUGHT_AND_REDEEMED);
    },
  );

  test.run();
}

const bin = (name: string): string => join(MODULES, '.bin', name);

const envOf = ({ url }: Service): NodeJS.ProcessEnv => ({ ...process.env, SERVICE_URL: url });

const COMPILED = '--strict --noUncheckedIndexedAccess --target es2023 --module nodenext --types node --skipLibCheck';

async function compiledAndRun(service: Service, dir: string, name: string): Promise<unknown> {
  copyFileSync(join(CLIENTS, `${name}.ts`), join(dir, `${name}.ts`));
  const types = ['--typeRoots', resolve('node_modules/@types')];
  await run(bin('tsc'), [...COMPILED.split(' '), ...types, `${name}.ts`], { cwd: dir }).catch(
    ({ stdout }: { readonly stdout: string }) => assert.unreachable(stdout),
  );
  const { stdout } = await run(process.execPath, [`${name}.js`], { cwd: dir, env: envOf(service) });
  return JSON.parse(stdout);
}
