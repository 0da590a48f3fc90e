import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'

// npm run soak:clone: what a person does who has just cloned the repository (its last commit), with nothing but the Node and npm of PATH: `npm start`, a chat,
// the console, which the first start builds, a second start that must install nothing, and one after the lock has changed, which must. Needs the registry; any fault is printed and is exit code 1.
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** A development package that the changed lock makes one of the server. */
const MOVED = 'expect-type'
const folder = await mkdtemp(join(tmpdir(), 'svc-clone-'))
const clone = join(folder, 'svc')
const home = join(folder, 'home')
const problems: string[] = []

/** What a person has: nothing of the npm or the packages that run this script. */
function personsEnv(): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|SVC_|NODE_)/.test(name))
  const path = (process.env.PATH ?? '').split(delimiter).filter(part => !/node_modules|node-gyp-bin/.test(part))
  return { ...(Object.fromEntries(own) as Record<string, string>), PATH: path.join(delimiter) }
}

/** Starts, chats and ends; says whether it installed anything. */
async function start(what: string, installs: boolean) {
  const began = performance.now()
  const service = await startService({ command: ['npm', 'start', '--'], cwd: clone, home, env: personsEnv() })
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const { status, body } = await post(`${service.url}/api/v1/chat`, { message: 'hello' })
  const page = await openConsole(service.url)
  const code = await service.stop()
  const installed = /installing/.test(service.output())
  if (installed !== installs) problems.push(`${what}: it ${installed ? 'installed' : 'did not install'}\n${service.output()}`)
  if (status !== 200 || typeof body.response !== 'string')
    problems.push(`${what}: the chat answered ${status} ${JSON.stringify(body)}`)
  if (page.problem !== undefined) problems.push(`${what}: ${page.problem}`)
  if (code !== 0) problems.push(`${what}: it ended with ${code}`)
  process.stdout.write(
    `${what}: ready after ${seconds} s, ${installed ? 'installed' : 'nothing installed'}, chat ${status}, console after ${page.seconds} s, ended with ${code}\n`
  )
}

/** The build of the page has this time. */
const BUILD_MS = 180_000

/** Waits until the page of the console is built, and reads it with its files. */
async function openConsole(url: string): Promise<{ readonly seconds: string; readonly problem: string | undefined }> {
  const began = performance.now()
  const isOver = () => performance.now() - began > BUILD_MS
  const read = async (path: string) => {
    const answer = await fetch(url + path)
    return { path, status: answer.status, text: await answer.text() }
  }
  const page = await until(
    () => read('/console'),
    ({ status, text }) => status === 200 || text.includes('could not be built') || isOver()
  )
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const paths = [...page.text.matchAll(/"(\/console\/files\/index-[^"]+)"/g)].map(([, path]) => path!)
  const bad = [page, ...(await Promise.all(paths.map(read)))].find(({ status }) => status !== 200)
  if (bad) return { seconds, problem: `${bad.path} answered ${bad.status}: ${bad.text.slice(0, 500)}` }
  return { seconds, problem: paths.some(path => path.endsWith('.js')) ? undefined : `no script in ${page.text}` }
}

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/** As `npm install --save-prod` would: the manifest and the lock agree again. */
async function moveToServer() {
  const edit = async <T>(name: string, change: (json: T) => void) => {
    const json = JSON.parse(await readFile(join(clone, name), 'utf8')) as T
    change(json)
    await writeFile(join(clone, name), `${JSON.stringify(json, null, 2)}\n`)
  }
  const move = (manifest: Manifest) => {
    manifest.dependencies = { ...manifest.dependencies, [MOVED]: manifest.devDependencies![MOVED]! }
    delete manifest.devDependencies![MOVED]
  }
  await edit<Manifest>('package.json', move)
  await edit<{ packages: Record<string, Manifest & { dev?: true }> }>('package-lock.json', ({ packages }) => {
    move(packages['']!)
    delete packages[`node_modules/${MOVED}`]!.dev
  })
}

try {
  execFileSync('git', ['clone', '--quiet', ROOT, clone])
  const node = execFileSync('node', ['--version'], { env: personsEnv(), cwd: clone, encoding: 'utf8' }).trim()
  process.stdout.write(`cloned; the Node of PATH is ${node}\n`)
  await start('first start', true)
  if (existsSync(join(clone, 'node_modules', MOVED))) problems.push(`the first start installed ${MOVED}, which no server needs`)
  await start('second start', false)
  await moveToServer()
  await start('start with a changed lock', true)
  if (!existsSync(join(clone, 'node_modules', MOVED))) problems.push(`the changed lock did not bring ${MOVED}`)
  await start('start after that', false)
} catch (error) {
  problems.push(String(error))
}
for (const fault of problems) process.stdout.write(`FAULT ${fault}\n`)
await rm(folder, { recursive: true, force: true })
process.exitCode = problems.length === 0 ? 0 : 1
