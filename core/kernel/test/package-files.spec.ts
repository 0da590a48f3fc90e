import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { definePlugin, PackageFiles, startHost, systemContext } from '@svc/core'
import { expect } from 'chai'

const ctx = systemContext(new AbortController().signal)

/** A package and what lies beside it. */
async function inPackage(run: (folder: string, outside: string) => Promise<void>, svc: object = {}): Promise<void> {
  const outside = await mkdtemp(join(tmpdir(), 'svc-files-'))
  const folder = join(outside, 'pages')
  try {
    await mkdir(join(folder, 'console/deep'), { recursive: true })
    await mkdir(join(folder, 'node_modules/other'), { recursive: true })
    const files = {
      'pages/package.json': JSON.stringify({
        name: 'pages',
        version: '1.0.0',
        main: 'index.js',
        type: 'module',
        svc: { api: 1, kind: 'page', ...svc },
      }),
      'pages/index.js': 'export default { setup() {} }',
      'pages/console/index.html': 'the page',
      'pages/console/deep/a.js': 'a part',
      'pages/console/.hidden': 'hidden',
      'pages/node_modules/other/a.js': 'another package',
      'secret.txt': 'secret',
    }
    for (const [path, text] of Object.entries(files)) await writeFile(join(outside, path), text)
    await run(folder, outside)
  } finally {
    await rm(outside, { recursive: true, force: true })
  }
}

const started = (folder: string) =>
  startHost({
    plugins: [pathToFileURL(folder), { name: 'own', use: definePlugin({ setup() {} }) }],
    log: { destination: { write() {} } },
  })

describe('the files of packages', () => {
  it('are read by their path from the folder of the package, and no others are', async () => {
    await inPackage(async (folder, outside) => {
      await symlink(join(outside, 'secret.txt'), join(folder, 'console/link.txt'))
      await symlink(outside, join(folder, 'console/up'))
      await symlink('index.html', join(folder, 'console/same.html'))
      await using host = await started(folder)
      const files = host.service(PackageFiles)
      const read = async (path: string, plugin = 'pages') => {
        const content = await files.read(plugin, path, ctx)
        return content && Buffer.from(content).toString()
      }
      expect(await read('console/index.html')).to.equal('the page')
      expect(await read('console/deep/a.js')).to.equal('a part')
      expect(await read('console/same.html')).to.equal('the page')
      const refused = [
        '',
        '.',
        '..',
        '../secret.txt',
        'console/../index.js',
        'console//index.html',
        '/etc/passwd',
        'console/',
        'console',
      ]
      const more = [
        'console/.hidden',
        'console/link.txt',
        'console/up/secret.txt',
        'node_modules/other/a.js',
        'none',
        'console\\index.html',
      ]
      for (const path of [...refused, ...more, 'console/index.html\0', 'console/index.html/x', 'x'.repeat(5_000)])
        expect(await read(path), path.slice(0, 50)).to.equal(undefined)
      for (const plugin of ['own', 'svc', 'none', '__proto__', ''])
        expect(await read('package.json', plugin), plugin).to.equal(undefined)
    })
  })

  it('are not read when they are too large', async () => {
    await inPackage(async folder => {
      await truncate(join(folder, 'console/index.html'), 9 * 1_048_576)
      await using host = await started(folder)
      const error: unknown = await host
        .service(PackageFiles)
        .read('pages', 'console/index.html', ctx)
        .catch((failed: unknown) => failed)
      expect(error).to.include({ code: 'INVALID_VALUE' })
    })
  })
})

/** The error of a start with these pages. */
async function startError(pages: object, contributes: object = {}): Promise<string> {
  let text = ''
  await inPackage(
    async folder => {
      const error: unknown = await started(folder).then(
        host => host.close(),
        (failed: unknown) => failed
      )
      expect(error).to.have.nested.property('details.codes').that.deep.equals(['MANIFEST_INVALID'])
      text = String(error)
    },
    { contributes: { console_pages: pages, ...contributes } }
  )
  return text
}

describe('pages of the console in a manifest', () => {
  for (const [what, page, key] of [
    ['a title with markup', { title: '<b>x', scope: 'read' }, 'title'],
    ['a long title', { title: 'x'.repeat(41), scope: 'read' }, 'title'],
    ['an unknown scope', { title: 'Notes', scope: 'all' }, 'scope'],
    ['a file outside of its folder', { title: 'Notes', scope: 'read', file: '../x.html' }, 'file'],
    ['a file that is no page', { title: 'Notes', scope: 'read', file: 'x.js' }, 'file'],
    ['a hidden file', { title: 'Notes', scope: 'read', file: '.x.html' }, 'file'],
    ['a view outside of its folder', { title: 'Notes', scope: 'read', view: '../x.json' }, 'view'],
    ['a view that is no data', { title: 'Notes', scope: 'read', view: 'x.js' }, 'view'],
    ['a view beside an app', { title: 'Notes', scope: 'read', view: 'x.json', file: 'x.html' }, 'file'],
    ['an unknown place', { title: 'Notes', scope: 'read', place: 'login' }, 'place'],
    ['tools in a place without results', { title: 'Notes', scope: 'read', place: 'run', tools: ['note'] }, 'tools'],
    ['tools without a place', { title: 'Notes', scope: 'read', tools: ['note'] }, 'tools'],
    ['results of no tool', { title: 'Notes', scope: 'read', place: 'tool_result', tools: [] }, 'tools'],
    ['results without tools', { title: 'Notes', scope: 'read', place: 'tool_result' }, 'tools'],
  ] as const)
    it(`cannot have ${what}`, async () => {
      expect(await startError({ notes: page })).to.match(new RegExp(`console_pages\\.notes\\.${key} (?:must|is required)`))
    })

  for (const [what, tool] of [
    ['a tool of another plugin', 'calculate'],
    ['a tool of an MCP server', 'shipping__find'],
    ['a member of all objects', 'constructor'],
  ] as const)
    it(`cannot show results of ${what}`, async () => {
      const page = { title: 'Notes', scope: 'read', place: 'tool_result', tools: ['note', tool] }
      expect(await startError({ notes: page }, { tools: ['note'] })).to.contain(
        `its page "notes" shows results of the tool "${tool}", which the plugin does not declare`
      )
    })

  it('cannot name a pattern as a tool', async () => {
    const page = { title: 'Notes', scope: 'read', place: 'tool_result', tools: ['*'] }
    expect(await startError({ notes: page }, { tools: ['*'] })).to.contain('must be the name of one tool')
  })
})
