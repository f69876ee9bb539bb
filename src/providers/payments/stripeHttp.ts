import Stripe from 'stripe';
import { within } from '../../lib/async/within.js';
import { ticks } from '../../lib/world.js';

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;
type Body = Awaited<ReturnType<HttpClient['makeRequest']>>;

/**
 * The library sets a property on each answer. For JSON that is not an object (a proxy's health page) that throws an
 * uncatchable error, which ends the process. Its timeout limits only silence: an answer that comes byte by byte would
 * hold its caller for ever.
 */
export function stripeHttp(): HttpClient {
  const client = Stripe.createNodeHttpClient();
  return {
    getClientName: () => client.getClientName(),
    async makeRequest(...request) {
      const timeoutMs = request[7];
      const start = ticks();
      const making = client.makeRequest(...request);
      const response = await within(making, timeoutMs, () => {
        making.then(destroy, () => undefined);
        throw Stripe.HttpClient.makeTimeoutError();
      });
      const toJSON = response.toJSON.bind(response);
      response.toJSON = () => objectIn(within(toJSON(), start + timeoutMs - ticks(), () => tooLate(response)));
      return response;
    },
  };
}

async function objectIn(answer: Promise<unknown>): Promise<object> {
  const body = await answer;
  if (body instanceof Object) return body;
  throw new SyntaxError('the answer is no JSON object');
}

function destroy(response: Body): void {
  (response.getRawResponse() as NodeJS.ReadableStream & { destroy(): void }).destroy();
}

function tooLate(response: Body): never {
  destroy(response);
  throw Stripe.HttpClient.makeResponseBodyError(Stripe.HttpClient.makeTimeoutError());
}
