/**
 * Finds the reason of a failed TLS connection: of a cluster's nodes the client reports only that it discovered none.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

const WAIT_MS = 3_000;
const DEFAULT_PORT = 2113;

/**
 * Why TLS with a node of the address is refused; `undefined` where it is not, no node answers, or the address disables
 * TLS.
 */
export async function tlsErrorAt(url: string): Promise<Error | undefined> {
  const [, hosts = '', query = ''] =
    /^esdb(?:\+discover)?:\/\/(?:[^@/]*@)?([^/?]+)\/?(?:\?(.*))?$/.exec(url.trim()) ?? [];
  const options = new URLSearchParams(query.replaceAll(/[^&=]+=/g, (name) => name.toLowerCase()));
  if (options.get('tls') === 'false' || options.get('tlsverifycert') === 'false') return undefined;
  const file = options.get('tlscafile');
  const errors = await Promise.all(
    hosts.split(',').map(async (node) => {
      const { hostname, port } = new URL(`https://${node.trim()}`);
      return tried(hostname.replace(/^\[(.*)\]$/, '$1'), Number(port || DEFAULT_PORT), file);
    }),
  );
  return errors.find((error) => error !== undefined);
}

async function tried(host: string, port: number, file: string | null): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      ALPNProtocols: ['h2'],
      timeout: WAIT_MS,
      ...(file === null ? {} : { ca: readFileSync(file) }),
    });
    const end = (error?: Error): void => {
      socket.destroy();
      resolve(error);
    };
    socket.once('secureConnect', () => end());
    socket.once('timeout', () => end());
    socket.once('error', end);
  });
}
