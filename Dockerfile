# The service; run it with an init (docker run --init), as the compose files do. Without settings it runs whole on embedded engines, its files in /data; ROLES and the engines' URLs say otherwise (docs/deployment.md).

# The Node whose tests .ci/run repeats (test/nodes). It loads better-sqlite3 13, which brings its own binary; 12, for Node 20, is not compiled.
FROM node:26.12.1-bookworm AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY scripts scripts
COPY src src
COPY console console
COPY test test
COPY bench bench
RUN node scripts/build.mjs && npm prune --omit=dev --ignore-scripts

FROM node:26.12.1-bookworm-slim
WORKDIR /app
# Metrics and the parts of /readyz are on a port of their own, which is published only where it is wanted.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data METRICS_PORT=9090
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist/service dist/service
COPY examples examples
COPY deploy/gift-in-container /usr/local/bin/gift
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000 9090
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.METRICS_PORT || process.env.PORT || 3000) + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--enable-source-maps", "dist/service/main.js"]
