# The service; run it with an init (docker run --init), as the compose files do. Without settings it runs whole on embedded engines, its files in /data; ROLES and the engines' URLs say otherwise (docs/deployment.md).

# With a compiler: better-sqlite3 12 is compiled where no binary is at hand. This Node loads 13, which brings its own; 12 is for the older Node that may be named here.
FROM node:22.21.1-bookworm AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts && npm rebuild better-sqlite3
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
COPY test test
COPY bench bench
RUN node scripts/build.mjs && npm prune --omit=dev --ignore-scripts

FROM node:22.21.1-bookworm-slim
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist/service dist/service
COPY examples examples
RUN ln -s /app/dist/service/gift.js /usr/local/bin/gift && mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.METRICS_PORT || process.env.PORT || 3000) + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--enable-source-maps", "dist/service/main.js"]
