import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { newPlugin } from '../../plugins/admin/plugin-manager/src/commands/author/new-plugin.ts'
import { testPlugin } from '../../plugins/admin/plugin-manager/src/commands/author/test-plugin.ts'
import { runSvc } from '../support/command.ts'
import { FRUGAL, SOURCE_TYPES } from '../support/entry.ts'
import { describeWith, lacking, skipBecause } from '../support/needs.ts'
import { publishInstalled, startRegistry } from '../support/registry.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The part of @types/pg that the guide uses; the repository does not depend on that package. */
const PG_TYPES = `declare module 'pg' {
  interface Client { query(query: string | { text: string; values?: unknown[] }): Promise<{ rows: any[] }>; release(broken?: boolean): void }
  class Pool { constructor(options: object); connect(): Promise<Client>; on(event: 'error', listener: (error: Error) => void): this; end(): Promise<void> }
  const pg: { Pool: typeof Pool }
  export { Pool }
  export default pg
}`

/** Follows the page in a new package, against a real database. */
describeWith('bubblewrap', 'docs/guides/connect-a-database.md', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  let place: string
  let folder: string
  let password: string
  let config: string

  before(async function () {
    skipBecause(this, lacking('postgres'))
    place = await mkdtemp(join(tmpdir(), 'svc-database-'))
    stack.defer(() => rm(place, { recursive: true, force: true }))
    const postgres = stack.use(await startPostgres())
    folder = join(place, 'svc-plugin-pgquery')
    await newPlugin({ name: 'svc-plugin-pgquery', kinds: ['tool'], js: false, dir: folder })
    await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'))
    await follow(folder, postgres)
    await copyPackage('pg', folder)
    await writeFile(join(folder, 'src/pg.d.ts'), PG_TYPES)
    password = postgres.password
    config = await configIn(postgres)
  })
  after(() => stack.disposeAsync())

  it('has a tool of the right types', async () => {
    const config = JSON.parse(await readFile(join(folder, 'tsconfig.json'), 'utf8')) as { compilerOptions: object }
    const checked = { compilerOptions: { ...config.compilerOptions, ...SOURCE_TYPES }, include: ['src', 'test/samples.ts'] }
    await writeFile(join(folder, 'tsconfig.guide.json'), JSON.stringify(checked))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', 'tsconfig.guide.json', '--pretty', 'false'], {
      cwd: folder,
      env: { ...process.env, ...FRUGAL },
    }).catch((error: { stdout: string }) => error)
    expect(stdout.split('\n').filter(line => /^(src|test)\/.*error TS|^error TS/.test(line))).to.deep.equal([])
  })

  it('has a tool that passes its kit in a process of its own, without a skipped case', async () => {
    const { cases, isolation, warnings } = await testPlugin({ folder, seed: 1, home: join(place, 'home') }, () => {})
    const isType = ({ title }: { title: string }) => title.includes('type errors')
    expect(cases.filter(one => one.state !== 'passed' && !isType(one))).to.deep.equal([])
    expect(isolation).to.equal('process')
    expect(warnings.filter(text => !/^pg looks at|^its build /.test(text))).to.deep.equal([])
  })

  it('is built, packed and installed in a process of its own, and its tool reads the database', async () => {
    await using registry = await startRegistry()
    await publishInstalled(registry, place, 'pg')
    const cwd = join(place, 'project')
    await mkdir(cwd)
    await writeFile(join(cwd, 'svc.config.yaml'), config)
    const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { scripts: { build: string } }
    expect(scripts.build).to.equal('tsc -p tsconfig.build.json')
    // the package is compiled against the types of the built packages, which scripts/test.mjs has just written
    if (process.env.SVC_TEST_ENTRY === undefined) await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: ROOT })
    // `npm pack` runs `npm run build`
    const npmEnv = { ...process.env, ...FRUGAL, npm_config_offline: 'true', npm_config_cache: join(place, 'cache') }
    await promisify(execFile)('npm', ['pack', '--pack-destination', cwd], { cwd: folder, env: npmEnv }).catch(
      (error: { stdout: string }) => expect.fail(error.stdout)
    )
    const env = { PGQUERY_PASSWORD: password, npm_config_registry: registry.url, npm_config_cache: join(place, 'cache') }
    const svc = (...args: string[]) => runSvc(args, { home: join(place, 'home'), cwd, env })
    const installed = await svc('plugins', 'install', './svc-plugin-pgquery-0.1.0.tgz', '--yes')
    expect(installed.code, `${installed.out}\n${installed.err}`).to.equal(0)
    expect(installed.out)
      .to.include('runs      in its own process')
      .and.include(/server: (\S+)/.exec(config)![1]!)
    const { out, err } = await svc('tools', 'call', 'pgquery', 'sql=SELECT version()')
    expect(out, err).to.match(/"version": ?"PostgreSQL \d+/)
    const written = await svc('tools', 'call', 'pgquery', 'sql=CREATE TABLE made (n int)')
    expect([written.code, written.err]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && /read-only transaction/.test(text)
    )
    const asStranger = { home: join(place, 'home'), cwd, env: { ...env, PGQUERY_PASSWORD: 'wrong' } }
    const stranger = await runSvc(['tools', 'call', 'pgquery', 'sql=SELECT 1'], asStranger)
    expect(stranger.err)
      .to.match(/TOOL_EXECUTION_FAILED.*\n.*password authentication failed/)
      .and.not.match(/pg-pool|node_modules|INTERNAL_ERROR/)
    const section = await svc('plugins', 'uninstall', 'svc-plugin-pgquery')
    expect([section.code, section.err]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && text.includes('Remove tools.pgquery from svc.config.yaml')
    )
    await writeFile(join(cwd, 'svc.config.yaml'), '')
    const uninstalled = await svc('plugins', 'uninstall', 'svc-plugin-pgquery')
    expect(uninstalled.code, uninstalled.err).to.equal(0)
    await writeFile(join(cwd, 'svc.config.yaml'), config)
    const unowned = await svc('serve', '--port', '0')
    expect([unowned.code, unowned.err]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && text.includes('If a plugin owns tools.pgquery, install that plugin first')
    )
  })
})

/** The configuration that the page shows. */
async function configIn({ port, user }: Postgres): Promise<string> {
  const text = await readFile(join(ROOT, 'docs/guides/connect-a-database.md'), 'utf8')
  const [, yaml = ''] = /^```yaml\n# svc\.config\.yaml\n([^]*?)^```$/m.exec(text)!
  return yaml.replace('127.0.0.1:5432', `127.0.0.1:${port}`).replace('user: postgres', `user: ${user}`)
}

/** Copies an installed package and its dependencies, as npm installs them: the sandbox sees the folder of the plugin only. */
async function copyPackage(name: string, folder: string): Promise<void> {
  const [from, to] = [ROOT, folder].map(place => join(place, 'node_modules', name)) as [string, string]
  await cp(from, to, { recursive: true })
  const { dependencies = {} } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as { dependencies?: object }
  for (const key of Object.keys(dependencies)) await copyPackage(key, folder)
}

/** Writes what the page shows into the package. */
async function follow(folder: string, { port, user, password }: Postgres): Promise<void> {
  const text = await readFile(join(ROOT, 'docs/guides/connect-a-database.md'), 'utf8')
  for (const file of ['src/tool.ts', 'src/index.ts', 'test/samples.ts']) {
    const [, code = ''] = new RegExp(`^\`\`\`ts\\n// ${file}\\n([^]*?)^\`\`\`$`, 'm').exec(text)!
    const here = code.replace('127.0.0.1:5432', `127.0.0.1:${port}`).replace("user: 'postgres'", `user: '${user}'`)
    await writeFile(join(folder, file), here.replace("PASSWORD: 'secret'", `PASSWORD: '${password}'`))
  }
  const [, permissions = ''] = /"permissions": (\{[^]*?\n {2}\})/.exec(text)!
  const file = join(folder, 'package.json')
  const { svc, ...pkg } = JSON.parse(await readFile(file, 'utf8')) as { readonly svc: object }
  const declared = JSON.parse(permissions.replaceAll(/ +\/\/.*$/gm, '')) as object
  const settings = JSON.parse(/"settings": (\[.*\])/.exec(text)![1]!) as string[]
  const made = { ...pkg, dependencies: { pg: '*' }, svc: { ...svc, permissions: declared, settings } }
  await writeFile(file, JSON.stringify(made, null, 2))
}
