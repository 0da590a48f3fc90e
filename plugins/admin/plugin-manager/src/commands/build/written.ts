import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface BuiltPlugin {
  readonly name: string
  readonly version: string
}

const START = `// Starts this build: node start.mjs serves; node start.mjs <command> is svc <command>.
import { join } from 'node:path'

process.env.SVC_PLUGINS = import.meta.dirname
process.env.SVC_HOME ??= join(import.meta.dirname, 'home')
// the configuration is part of the build
process.env.SVC_TRUST_CONFIG ??= '1'
process.chdir(import.meta.dirname)
const [first = '-'] = process.argv.slice(2)
if (first.startsWith('-') && !['-h', '--help', '--version'].includes(first)) process.argv.splice(2, 0, 'serve')
await import('./node_modules/@svc/cli/bin/svc.js')
`

const CONTAINER = `# This build in a container: podman build -t svc .
FROM docker.io/library/node:24-bookworm-slim
RUN apt-get update \\
  && apt-get install -y --no-install-recommends bubblewrap \\
  && rm -rf /var/lib/apt/lists/* \\
  && mkdir --mode=0700 /var/lib/svc && chown node:node /var/lib/svc
WORKDIR /opt/svc
COPY . .
USER node
ENV SVC_HOME=/var/lib/svc SVC_SERVER__HOST=0.0.0.0 SVC_SERVER__AUTH__ENABLED=true
VOLUME /var/lib/svc
EXPOSE 8080
# asks at the port and with the TLS of the configuration
HEALTHCHECK --start-period=60s CMD ["node", "start.mjs", "status", "--live"]
ENTRYPOINT ["node", "start.mjs"]
CMD ["serve"]
`

const readme = (plugins: readonly BuiltPlugin[]) => `# A build of svc

\`npm start\` serves (Node.js 24 or newer; no \`npm install\`: node_modules is part of it), \`podman build .\` makes a container of it. Data goes to SVC_HOME, else to \`home/\`.

${plugins.map(({ name, version }) => `- ${name} ${version}`).join('\n')}
`

/** Writes what makes a folder of packages a build that starts with one command. */
export async function writeFrame(to: string, version: string, plugins: readonly BuiltPlugin[]): Promise<void> {
  const pkg = {
    name: 'svc-build',
    version,
    private: true,
    type: 'module',
    scripts: { start: 'node start.mjs' },
    engines: { node: '>=24' },
  }
  const files = {
    'package.json': `${JSON.stringify(pkg, null, 2)}\n`,
    'start.mjs': START,
    Containerfile: CONTAINER,
    '.dockerignore': 'home\n',
    'README.md': readme(plugins),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(to, name), text)
}
