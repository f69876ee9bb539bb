/** The frame of pages for people (docs/api/gifts.md#launch-page): no script, no index, no referrer. */

export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Robots-Tag': 'noindex, nofollow',
  'Referrer-Policy': 'no-referrer',
} as const;

/** @param content HTML */
export function htmlPage(content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>A gift for you</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; display: grid; place-items: center; background: #faf7f2; color: #222 }
main { max-width: 26rem; margin: 1rem; padding: 2rem; background: #fff; border-radius: 1rem; box-shadow: 0 .5rem 2rem #0001; text-align: center }
h1 { margin: 0 0 .25rem; font-size: 1.6rem }
a { display: inline-block; padding: .6rem 1.4rem; border-radius: 2rem; background: #b3263a; color: #fff; text-decoration: none }
</style>
</head>
<body>
<main>
${content}
</main>
</body>
</html>
`;
}
