/** What the diagnosis finds, over HTTP and on the command line. */
import assert from 'node:assert/strict';
import { gift } from './cli.js';
import { type Json, request } from './service.js';

const codesOf = (found: readonly Json[]): string[] => found.map(({ code }) => code as string);

/** Codes of what is found over HTTP. @param token of a user of support, which the fault may keep from being got */
export async function codesOverHttp(url: string, token: string): Promise<string[]> {
  const reply = await request(`${url}/ops/diagnosis`, 'GET', { token });
  assert.equal(reply.status, 200, reply.text);
  return codesOf(reply.json.data as Json[]);
}

/** Codes of what a command line finds beside the service at `url`, or without one. */
export async function codesOnCommandLine(
  settings: Readonly<Record<string, string>>,
  url: string | undefined,
): Promise<string[]> {
  const PORT = url === undefined ? '0' : new URL(url).port;
  const { code, out, err, records } = await gift({ ...settings, PORT }, ['diagnose', '--json']);
  const found = out === '' ? [] : codesOf(records());
  assert.equal(code, found.length === 0 ? 0 : 1, err);
  return found;
}
