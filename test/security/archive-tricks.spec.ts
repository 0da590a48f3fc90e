import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { planChange } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { Header } from 'tar'
import { inWorkspace } from '../support/plugin-workspace.ts'

const MANIFEST = {
  name: 'svc-plugin-bad',
  version: '1.0.0',
  type: 'module',
  main: 'index.js',
  keywords: ['svc-plugin'],
  svc: { api: 1, kind: 'tool' },
}
const HONEST = JSON.stringify(MANIFEST)
/** What a person would not have accepted. */
const GREEDY = JSON.stringify({ ...MANIFEST, svc: { ...MANIFEST.svc, permissions: { read: ['/'] } } })
const CODE = 'export default { requires: {}, optional: {}, setup() {} }\n'

const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 511)])

/** An entry whose name has exactly these bytes. */
function raw(name: Buffer | string, text: string, type = '0', mode = 0o644): Buffer {
  const head = Buffer.alloc(512)
  Buffer.from(name as string).copy(head)
  const octal = (value: number, width: number) => `${value.toString(8).padStart(width - 1, '0')}\0`
  head.write(
    `${octal(mode, 8)}${octal(0, 8)}${octal(0, 8)}${octal(Buffer.byteLength(text), 12)}${octal(0, 12)}        ${type}`,
    100
  )
  head.write('ustar\u000000', 257)
  head.write(
    `${head
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148
  )
  return Buffer.concat([head, padded(Buffer.from(text))])
}

/** Text that says something of the next entry in its stead. */
function pax(records: Readonly<Record<string, string>>, type = 'x'): Buffer {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = ` ${key}=${value}\n`
    const length = Buffer.byteLength(rest)
    return `${length + String(length + String(length).length).length}${rest}`
  })
  return raw('PaxHeader', lines.join(''), type)
}

function link(path: string, target: string, type: 'SymbolicLink' | 'Link'): Buffer {
  const header = new Header({ path, type, linkpath: target, mode: 0o644, size: 0, mtime: new Date(0) })
  header.encode()
  return header.block!
}

const PACKAGE = raw('package/package.json', HONEST)
const INDEX = raw('package/index.js', CODE)
const packed = (entries: readonly Buffer[]) => gzipSync(Buffer.concat([PACKAGE, INDEX, ...entries, Buffer.alloc(1024)]))

const TRICKS: Readonly<Record<string, readonly [entries: readonly Buffer[], says: RegExp]>> = {
  'a second package.json behind a doubled slash': [[raw('package//package.json', GREEDY)], /empty part/],
  'a second package.json in other case': [[raw('package/Package.json', GREEDY)], /differ only in case/],
  'a second package.json by a pax header': [[pax({ path: 'package/package.json' }), raw('package/ok', GREEDY)], /a file twice/],
  'a second package.json by a name that ends with NUL': [
    [pax({ path: 'package/package.json\0.txt' }), raw('package/ok', GREEDY)],
    /a file twice|control/,
  ],
  'two names that differ in Unicode form alone': [
    [raw('package/caf\u00e9.js', '1'), raw('package/cafe\u0301.js', '2')],
    /Unicode form/,
  ],
  'two names that are not UTF-8': [
    [raw(Buffer.from('package/a\xff', 'latin1'), '1'), raw(Buffer.from('package/a\xfe', 'latin1'), '2')],
    /not UTF-8/,
  ],
  'a file in a file': [[raw('package/index.js/x', '1')], /a file and a folder/],
  'a path that climbs by a pax header': [[pax({ path: 'package/../../evil.js' }), raw('package/ok', '1')], /with \. or \.\./],
  'a path that climbs by a long name of GNU tar': [
    [raw('././@LongLink', `package/../../${'a'.repeat(200)}`, 'L'), raw('package/ok', '1')],
    /with \. or \.\./,
  ],
  'an absolute path by a pax header': [[pax({ path: '/tmp/evil.js' }), raw('package/ok', '1')], /absolute/],
  'a name that no file system takes': [[pax({ path: `package/${'a'.repeat(300)}` }), raw('package/ok', '1')], /too long/],
  'a path that no system takes': [[pax({ path: `package/${'a/'.repeat(3000)}x` }), raw('package/ok', '1')], /too long/],
  'a name with a hidden character': [[raw('package/index\u202esj.js', '1')], /hidden character/],
  'a symbolic link by a pax header': [[pax({ linkpath: '/etc' }), link('package/etc', 'x', 'SymbolicLink')], /a link/],
  'a hard link to a file outside': [[link('package/passwd', '/etc/passwd', 'Link')], /a link/],
  'a pipe': [[raw('package/pipe', '', '6')], /FIFO/],
  'a sparse file': [[raw('package/sparse', '1', 'S')], /unknown kind/],
  'an entry of an unknown kind': [[raw('package/odd', '1', 'Z')], /unknown kind/],
  'a set-user-id bit': [[raw('package/tool', '1', '0', 0o4755)], /set-user-id/],
  'more folders than a plugin can need': [
    Array.from({ length: 100_001 }, (_, at) => raw(`package/${at}/`, '', '5')),
    /more than 100000 files and folders/,
  ],
}

describe('an archive of a plugin that is not what it seems', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-archive-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const failureOf = async (work: Promise<unknown>) =>
    work.then(
      () => 'it was accepted',
      (error: { code: string; message: string }) => `${error.code} ${error.message}`
    )

  for (const [what, [entries, says]] of Object.entries(TRICKS))
    it(`is refused for ${what}, and nothing is unpacked`, async () => {
      const home = join(folder, 'home')
      const file = join(folder, 'bad.tgz')
      await writeFile(file, packed(entries))
      const looked = async () => {
        await using _change = await planChange(home, { install: [{ spec: file }] })
      }
      const said = await failureOf(looked())
      expect(said)
        .to.match(/^PLUGIN_TARBALL_UNSAFE/)
        .and.match(says)
      expect(said, 'a hidden character in the error').to.not.match(/[\p{Cc}\p{Cf}]/u)
      expect(await readdir(home).catch(() => [])).to.deep.equal([])
    })

  it('is refused by svc plugins install before a person is asked for permissions that it does not show', async () => {
    await inWorkspace(async workspace => {
      const file = join(workspace.folder, 'bad.tgz')
      await writeFile(file, packed([raw('package//package.json', GREEDY)]))
      const { code, err } = await workspace.svc('plugins', 'install', file, '--yes')
      expect(code).to.equal(1)
      expect(err).to.contain('PLUGIN_TARBALL_UNSAFE')
      expect(await workspace.lock().catch(() => 'no lock')).to.equal('no lock')
    })
  })

  it('is refused where another tarball has taken its place since it was shown', async () => {
    const home = join(folder, 'other-home')
    const file = join(folder, 'good.tgz')
    await writeFile(file, packed([]))
    const exchanged = async () => {
      await using change = await planChange(home, { install: [{ spec: file }] })
      for (const item of await readdir(home, { recursive: true }))
        if (item.endsWith('.tgz'))
          await writeFile(
            join(home, item),
            gzipSync(Buffer.concat([raw('package/package.json', GREEDY), INDEX, Buffer.alloc(1024)]))
          )
      await change.build()
    }
    expect(await failureOf(exchanged())).to.match(/^(PLUGIN_CHANGED|PLUGIN_TARBALL_UNSAFE|NPM_FAILED)/)
    expect(await readdir(join(home, 'plugins/sets')).catch(() => [])).to.deep.equal([])
  }).timeout(30_000)
})
