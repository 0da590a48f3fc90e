// Asks the registry for advisories about the packages of package-lock.json: npm run audit
// Exits with 1 when there are advisories. Exits with 0 when there are none or when the registry does not support the query, and
// prints which.
import { spawnSync } from 'node:child_process'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MOST_BYTES = 64 * 1024 * 1024
const FLAGS = ['--package-lock-only', '--json', '--fetch-retries=1', '--fetch-retry-mintimeout=200', '--fetch-timeout=60000']

const say = text => process.stdout.write(`${text}\n`)

const report = audit()
if (report.vulnerabilities === undefined) say(`No answer about advisories: ${reasonIn(report)}. Nothing was checked.`)
else {
  const found = Object.values(report.vulnerabilities).flatMap(advisoriesOf)
  for (const line of new Set(found)) say(line)
  say(
    found.length === 0
      ? 'The registry has no advisory about a package of package-lock.json.'
      : 'Update these packages, then run npm run lock.'
  )
  process.exitCode = found.length === 0 ? 0 : 1
}

/** The advisories that npm found: the npm that runs this script, else the installed one. */
function audit() {
  const { npm_execpath: cli = '' } = process.env
  const [file, ...first] = /^npm.*\.[cm]?js$/.test(basename(cli)) ? [process.execPath, cli] : ['npm']
  const { stdout, stderr, error } = spawnSync(file, [...first, 'audit', ...FLAGS], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: MOST_BYTES,
  })
  if (error) return { message: error.message }
  try {
    return JSON.parse(stdout)
  } catch {
    return { message: stderr.trim().split('\n').at(-1) }
  }
}

/** An address can contain a credential, so it is left out. */
function reasonIn({ message, error }) {
  const text = String(message ?? error?.summary ?? 'npm gives no reason')
  return text.split('\n')[0].replace(/\s*-?\s*(\w+ )?https?:\S+/g, '')
}

/** The advisories about a package itself. Those of its dependencies are listed there. */
function advisoriesOf({ name, via = [] }) {
  return via
    .filter(item => typeof item === 'object')
    .map(({ severity, title, range, url }) => `${severity}  ${name} ${range}  ${title}  ${url}`)
}
