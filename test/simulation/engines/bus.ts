/**
 * A simulated bus: the embedded bus's client and router, with a link between them that loses, repeats and delays
 * messages. The router is the server, which never fails.
 */
import { type BusClient, openBusClient } from '../../../src/adapters/embedded/bus/client.js';
import type { Frame } from '../../../src/adapters/embedded/bus/frames.js';
import { openRouter, type Peer, type Router } from '../../../src/adapters/embedded/bus/router.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { Link } from '../world/link.js';

/** Messages between processes, which may be lost or repeated; other frames announce services, and may not. */
const MESSAGES = new Set(['req', 'pub', 'ask', 'rep']);

/** The server of a bus. Refused frames are those that the link repeats. */
export const busRouter = (): Router => openRouter(() => undefined);

/** Opens a client of the bus for the process at the other end of the link. */
export function openSimulatedBus(router: Router, link: Link, onError: (error: unknown) => void): Bus {
  const client: BusClient = openBusClient(onError);
  const peer: Peer = {
    send: (frame) => carry(frame, (text) => link.deliver(text, () => client.receive(frame))),
    congested: () => undefined,
    hold: () => undefined,
  };
  let closing: Promise<void> | undefined;

  /** Carries a frame over, never, once or twice. */
  function carry(frame: Frame, over: (text: string) => void): void {
    const { header } = frame;
    const text = `${header.t}${'s' in header ? ` ${header.s}` : ''}`;
    const isMessage = MESSAGES.has(header.t);
    if (isMessage && link.happens('loses a message')) return;
    over(text);
    if (isMessage && link.happens('repeats a message')) over(text);
  }

  client.attach({
    send: (frame) => carry(frame, (text) => link.send(text, () => router.receive(peer, frame))),
    congested: () => undefined,
  });
  link.onLost(() => router.leave(peer));
  const leave = async (): Promise<void> => {
    await client.close();
    link.send('leave', () => router.leave(peer));
  };
  return {
    engine: 'nats',
    request: client.request,
    serve: client.serve,
    publish: client.publish,
    subscribe: client.subscribe,
    ping: client.ping,
    async close() {
      closing ??= leave();
      await closing;
    },
  };
}
