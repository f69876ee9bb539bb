/** Sends messages as deliveries are sent, to any address: to the server of an app developer. */
import { addressPolicy } from './addresses.js';
import { sendSigned } from './attempt.js';
import type { Message } from './message.js';
import { openSender } from './sender.js';
import { isDelivered } from './verdict.js';

interface DevelopersSender {
  /** @returns `absent`: nothing listens there; `stopped`: `signal` ended it, and it is unknown whether it arrived */
  send(
    message: Omit<Message, 'type'>,
    signal: AbortSignal,
  ): Promise<{ readonly became: 'delivered' | 'refused' | 'absent' | 'stopped'; readonly answer: string }>;
  close(): void;
}

export function openDevelopersSender(url: string, secret: string, version: string): DevelopersSender {
  const sender = openSender({
    addresses: addressPolicy({ privateAddresses: true, refusedNetworks: [] }),
    userAgent: `gift-commerce/${version}`,
  });
  return {
    async send(message, signal) {
      const sent = await sendSigned(sender, url, [secret], message, signal);
      if (sent === 'stopped') return { became: sent, answer: '' };
      const { outcome, durationMs } = sent;
      if ('error' in outcome) {
        const isAbsent = (outcome.refused ?? outcome.unreached) === true;
        return { became: isAbsent ? 'absent' : 'refused', answer: outcome.error };
      }
      if (isDelivered(outcome)) return { became: 'delivered', answer: `${outcome.status}, ${durationMs} ms` };
      return { became: 'refused', answer: `${outcome.status} ${outcome.response.slice(0, 200)}`.trim() };
    },
    close: sender.close,
  };
}
