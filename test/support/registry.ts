import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { once } from 'node:events'
import { startChild } from '@svc/worker-pool/processes'
import { create } from 'tar'
import { COMPILED } from './entry.ts'

/** A registry of npm (verdaccio) on loopback, empty at first; whoever asks may publish. */
export interface Registry extends AsyncDisposable {
  readonly url: string
  /** Publishes a tarball under the name and version of its package.json, or under the one given; `dist` goes to what the registry tells of the tarball. Returns the tarball's integrity. */
  publish(tarball: string, pkg: PackageJson, dist?: object): Promise<string>
}

export interface PackageJson {
  readonly name: string
  readonly version: string
  readonly [key: string]: unknown
}

/** Starts it in a process of its own, with a folder of its own. */
export async function startRegistry(): Promise<Registry> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-registry-'))
  const child = await startChild({
    file: process.execPath,
    args: [fileURLToPath(new URL('registry-server.ts', import.meta.url)), folder],
    env: { PATH: process.env.PATH ?? '', HOME: folder, NODE_ENV: 'production', ...COMPILED },
  })
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string]
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    publish: (tarball, pkg, dist = {}) => publish(url, tarball, pkg, dist),
    async [Symbol.asyncDispose]() {
      await child.end()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function publish(url: string, tarball: string, pkg: PackageJson, metadata: object): Promise<string> {
  const { name, version } = pkg
  const bytes = await readFile(tarball)
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  const file = `${name}-${version}.tgz`
  const dist = {
    integrity,
    shasum: createHash('sha1').update(bytes).digest('hex'),
    tarball: `${url}/${name}/-/${file}`,
    ...metadata,
  }
  const answer = await fetch(`${url}/${name.replace('/', '%2f')}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      _id: name,
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { ...pkg, _id: `${name}@${version}`, dist } },
      _attachments: {
        [file]: { content_type: 'application/octet-stream', data: bytes.toString('base64'), length: bytes.length },
      },
    }),
  })
  if (!answer.ok) throw new Error(`${name} was not published: ${answer.status} ${await answer.text()}`)
  return integrity
}

/** Writes files, path → text, into a folder. */
export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
}

/** Makes a tarball as `npm pack` does, with `package.json` and further files; returns its file. */
export async function tarballOf(folder: string, pkg: PackageJson, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const work = await mkdtemp(join(folder, 'pack-'))
  await writeFiles(join(work, 'package'), { 'package.json': JSON.stringify(pkg, null, 2), ...files })
  const file = join(work, `${pkg.name.replace('@', '').replace('/', '-')}-${pkg.version}.tgz`)
  await create({ file, cwd: work, gzip: true, portable: true }, ['package'])
  return file
}

/** Publishes a package of this repository's `node_modules`, and all that it depends on. */
export async function publishInstalled(registry: Registry, work: string, name: string, done = new Set<string>()): Promise<void> {
  if (done.has(name)) return
  done.add(name)
  const source = createRequire(import.meta.url)
    .resolve.paths(name)!
    .map(folder => join(folder, name))
    .find(folder => existsSync(join(folder, 'package.json')))
  if (source === undefined) throw new Error(`${name} is not installed`)
  const pkg = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as PackageJson & { dependencies?: object }
  const folder = await mkdtemp(join(work, 'pack-'))
  await cp(source, join(folder, 'package'), { recursive: true })
  const tarball = join(folder, 'package.tgz')
  await create({ file: tarball, cwd: folder, gzip: true, portable: true }, ['package'])
  await registry.publish(tarball, pkg)
  for (const key of Object.keys(pkg.dependencies ?? {})) await publishInstalled(registry, work, key, done)
}
