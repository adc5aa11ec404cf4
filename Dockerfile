# One image for every process. The command selects the process:
#   node src/main.ts            the API, the default
#   node workers/main.ts        a worker
#   node src/cli/migrate.ts     migrations, once per release
#   node src/cli/main.ts …      voucherctl
# Node runs the TypeScript files directly, so there is no build step.

ARG NODE_IMAGE=node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No optional package is needed. The optional packages are a compiler for a peer dependency of the type checker,
# colours, and unused native decoders.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
 && npm pkg delete devDependencies workspaces && npm sbom --sbom-format=cyclonedx > sbom.cdx.json

# The generated files: the receipt verifier, and the files of GET /docs/packages/.
FROM ${NODE_IMAGE} AS generated
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages ./packages
RUN npm ci --ignore-scripts
COPY src ./src
COPY docs ./docs
COPY migrations ./migrations
RUN npm run generate && npm run packages

# Everything that `npm test` needs except the two servers. For the profile `test` of docker-compose.yml.
FROM ${NODE_IMAGE} AS test
RUN apt-get update \
 && apt-get install -y --no-install-recommends chromium curl docker-compose fonts-dejavu-core fonts-liberation jq nginx-light php-cli prometheus python3 redis-server \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
RUN chown node:node /app
USER node
COPY --chown=node:node package.json package-lock.json .npmrc ./
COPY --chown=node:node packages ./packages
RUN npm ci
COPY --chown=node:node . .
RUN npm run prepare
CMD ["npm", "test"]

FROM ${NODE_IMAGE} AS service
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=dependencies /app/sbom.cdx.json ./
COPY package.json ./
COPY docs ./docs
COPY migrations ./migrations
COPY packages ./packages
COPY --from=generated /app/dist ./dist
COPY src ./src
COPY workers ./workers
# In a checkout under umask 027, only the owner can read the files. The volumes of the log's key and anchor get their
# owner from here.
RUN chmod -R a+rX package.json docs migrations packages dist src workers \
 && install -d -o node -g node -m 0700 /var/lib/vouchers/key /var/lib/vouchers/anchor
# The files belong to root, so the process cannot change them.
USER node
EXPOSE 3000
# No HEALTHCHECK, because this image runs every process, and each has its own address for probes. docs/operations.md
# lists them. These lines are last, so that another revision changes no layer.
ARG VERSION=0.1.0 REVISION=unknown SOURCE=unknown
LABEL org.opencontainers.image.title=partner-voucher-api org.opencontainers.image.licenses=MIT \
      org.opencontainers.image.version=$VERSION org.opencontainers.image.revision=$REVISION org.opencontainers.image.source=$SOURCE
CMD ["node", "src/main.ts"]
