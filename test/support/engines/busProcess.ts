/** A bus client in a process of its own, driven over the process's channel; handlers run here, in the test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openEmbeddedBus } from '../../../src/adapters/embedded/bus/bus.js';
import { openNatsBus } from '../../../src/adapters/nats/bus.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError, type Unsubscribe } from '../../../src/ports/bus.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';

/** A call one side makes of the other: `method` with `args`; `id` names the answer. */
interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** The answer. Errors travel by name. */
interface Answer {
  readonly answers: number;
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string; readonly outcomeUnknown?: boolean };
}

/** A bus client whose process can be killed. */
export interface BusProcess extends Bus {
  readonly pid: number;
  /** Ends the process at once, as a power cut would. */
  kill(): Promise<void>;
  /** Freezes the process, and lets it go on. */
  freeze(): void;
  thaw(): void;
}

/** Which bus: that of a data folder, or NATS. */
export type BusPlace = { readonly dir: string } | { readonly url: string; readonly logId: string };

/** Calls and answers over a channel. */
function channel(post: (message: Call | Answer) => void, methods: (call: Call) => Promise<unknown>) {
  const open = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  let last = 0;
  return {
    call: (method: string, ...args: unknown[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        open.set(++last, { resolve, reject });
        post({ id: last, method, args });
      }),
    async take(message: Call | Answer): Promise<void> {
      if ('answers' in message) {
        const waiting = open.get(message.answers);
        open.delete(message.answers);
        if (message.error === undefined) waiting?.resolve(message.value);
        else waiting?.reject(revive(message.error));
        return;
      }
      try {
        post({ answers: message.id, value: await methods(message) });
      } catch (error) {
        const { name, message: text, outcomeUnknown } = error as UnavailableError;
        post({
          answers: message.id,
          error: { name, message: text, ...(outcomeUnknown === undefined ? {} : { outcomeUnknown }) },
        });
      }
    },
    drop(): void {
      for (const waiting of open.values()) waiting.reject(new UnavailableError('the process is gone'));
      open.clear();
    },
  };
}

function revive({ name, message, outcomeUnknown }: NonNullable<Answer['error']>): Error {
  if (name === 'NoRespondersError') return new NoRespondersError(message);
  if (name === 'DeadlineError') return new DeadlineError(message, 0);
  if (name === 'RemoteError') return new RemoteError(message);
  if (name === 'UnavailableError') return new UnavailableError(message, { outcomeUnknown: outcomeUnknown ?? false });
  if (name === 'RangeError') return new RangeError(message);
  if (name === 'TypeError') return new TypeError(message);
  return new Error(message);
}

/** Starts a process with a bus client. */
export async function openBusInProcess(place: BusPlace): Promise<BusProcess> {
  const child: ChildProcess = fork(fileURLToPath(import.meta.url), [JSON.stringify(place)], { stdio: 'inherit' });
  const handlers = new Map<number, (payload: never) => unknown>();
  const lines = channel(
    (message) => void (child.connected && child.send(message)),
    async ({ args: [handler, payload] }) => handlers.get(handler as number)?.(payload as never),
  );
  child.on('message', (message) => void lines.take(message as Call | Answer));
  const exited = once(child, 'exit').then(() => lines.drop());
  await lines.call('open');

  let last = 0;
  const register = async (
    method: 'serve' | 'subscribe',
    handler: (payload: never) => unknown,
    ...args: string[]
  ): Promise<Unsubscribe> => {
    handlers.set(++last, handler);
    const own = last;
    await call(method, own, ...args);
    return async () => void (await call('stop', own));
  };
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    await lines.call('close');
    child.disconnect();
    await exited;
  };
  const call = (method: string, ...args: unknown[]): Promise<unknown> =>
    closed === undefined ? lines.call(method, ...args) : Promise.reject(new UnavailableError('the bus is closed'));
  return {
    engine: 'dir' in place ? 'embedded' : 'nats',
    pid: child.pid as number,
    request: <R>(subject: string, payload: object, options: { timeoutMs: number }) =>
      call('request', subject, payload, options) as Promise<R>,
    serve: (subject, queue, handler) => register('serve', handler, subject, queue),
    publish: async (subject, payload) => void (await call('publish', subject, payload)),
    subscribe: (subject, handler) => register('subscribe', handler, subject),
    ping: async () => void (await call('ping')),
    close: () => (closed ??= close()),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  };
}

/** The started process. */
async function serveChannel(place: BusPlace): Promise<void> {
  const post = (message: Call | Answer): void => void process.send?.(message);
  let bus: Bus | undefined;
  const stops = new Map<number, Unsubscribe>();
  const lines = channel(post, async ({ method, args }) => {
    const [first, second, third] = args as [never, never, never];
    if (method === 'open')
      bus = await ('dir' in place
        ? openEmbeddedBus({ ...place, onError: () => undefined })
        : openNatsBus({ ...place, onError: () => undefined }));
    if (bus === undefined) throw new Error('not open');
    if (method === 'request') return bus.request(first, second, third);
    if (method === 'publish') return bus.publish(first, second);
    if (method === 'ping') return bus.ping();
    if (method === 'close') return bus.close();
    if (method === 'stop') return stops.get(first)?.();
    if (method === 'serve')
      stops.set(
        first,
        await bus.serve(second, third, (payload) => lines.call('handle', first, payload) as Promise<object>),
      );
    if (method === 'subscribe')
      stops.set(
        first,
        await bus.subscribe(second, (payload) => void lines.call('handle', first, payload).catch(() => undefined)),
      );
    return undefined;
  });
  process.on('message', (message) => void lines.take(message as Call | Answer));
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await serveChannel(JSON.parse(process.argv[2] as string) as BusPlace);
