/**
 * How requests go to Stripe: by the library's own client, but answers that it can't take in, or that never end, are
 * failures like any other.
 */
import Stripe from 'stripe';
import { within } from '../../lib/async/within.js';

type HttpClient = ReturnType<typeof Stripe.createNodeHttpClient>;
type Body = Awaited<ReturnType<HttpClient['makeRequest']>>;

/**
 * The client. The library hangs something on each answer: of JSON that is no object, as a proxy's health page may be,
 * that throws where nobody can catch it, and the process ends. And its time limit is one on silence: an answer that
 * comes byte by byte would keep its caller for as long as it likes.
 */
export function stripeHttp(): HttpClient {
  const client = Stripe.createNodeHttpClient();
  return {
    getClientName: () => client.getClientName(),
    async makeRequest(...request) {
      const timeoutMs = request[7];
      const began = performance.now();
      const making = client.makeRequest(...request);
      const response = await within(making, timeoutMs, () => {
        making.then(destroy, () => undefined);
        throw Stripe.HttpClient.makeTimeoutError();
      });
      const toJSON = response.toJSON.bind(response);
      response.toJSON = () =>
        objectIn(within(toJSON(), began + timeoutMs - performance.now(), () => tooLate(response)));
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
