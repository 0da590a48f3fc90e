import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { consolePageKit } from '@svc/testing'
import { expect } from 'chai'

const GOOD = {
  'console/index.html':
    '<!doctype html><html lang="en"><head><title>Notes</title><link rel="stylesheet" href="page.css"><script src="bridge.js"></script><script src="page.js" defer></script></head><body><h1>Notes</h1></body></html>',
  'console/page.js': "void svc.request('GET', '/notes')\nvoid svc.request('DELETE', `/notes/${encodeURIComponent(id)}`)",
  'console/page.css': 'h1 { color: red }',
}
type Files = Readonly<Record<string, string>>

/** The titles of the cases that fail for a package with these files. */
async function failures(
  files: Files,
  more: object = {},
  rights = ['GET /notes', 'DELETE /notes/*'],
  page: object = {},
  contributes: object = {}
): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-page-kit-'))
  try {
    await mkdir(join(folder, 'console'))
    const svc = {
      api: 1,
      kind: 'page',
      contributes: { ...contributes, console_pages: { notes: { title: 'Notes', scope: 'read', ...page } } },
      permissions: { console: rights },
    }
    const all = { 'package.json': JSON.stringify({ name: 'svc-plugin-notes', version: '1.0.0', ...more, svc }), ...files }
    for (const [path, text] of Object.entries(all)) await writeFile(join(folder, path), text)
    const failed: string[] = []
    for (const { title, run } of await consolePageKit(folder)) await run().catch(() => failed.push(title))
    return failed
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const html = (from: string, to: string): Files => ({
  ...GOOD,
  'console/index.html': GOOD['console/index.html'].replace(from, to),
})
const NO_INLINE = 'console page notes: has scripts and styles in files, as its policy demands'
const NO_OUTSIDE = 'console page notes: loads only files of its folder that the console sends'
const ITS_FILE = 'console page notes: has its file, with a language, a title and bridge.js before its own scripts'

describe('the kit of console pages', () => {
  it('accepts a page that a browser runs', async () => {
    expect(await failures(GOOD, { files: ['index.js', 'console'] })).to.deep.equal([])
  })

  for (const [what, files, title] of [
    ['a script in the markup', html('<h1>', '<script>go()</script><h1>'), NO_INLINE],
    ['a handler in the markup', html('<h1>', '<h1 onclick="go()">'), NO_INLINE],
    ['a style in the markup', html('<h1>', '<h1 style="color: red">'), NO_INLINE],
    ['a module', html('<script src="page.js"', '<script type="module" src="page.js"'), NO_INLINE],
    ['a script of another server', html('src="page.js"', 'src="https://example.org/page.js"'), NO_OUTSIDE],
    ['a file of the server', html('href="page.css"', 'href="/console/files/page.css"'), NO_OUTSIDE],
    ['a file that is not there', html('href="page.css"', 'href="none.css"'), NO_OUTSIDE],
    ['a type that the console does not send', html('href="page.css"', 'href="page.json"'), NO_OUTSIDE],
    ['no bridge', html('<script src="bridge.js"></script>', ''), ITS_FILE],
    [
      'the bridge after its own scripts',
      html('<script src="bridge.js">', '<script src="page.js"></script><script src="bridge.js">'),
      ITS_FILE,
    ],
    ['no language', html(' lang="en"', ''), ITS_FILE],
    ['no title', html('<title>Notes</title>', ''), ITS_FILE],
  ] as const)
    it(`finds ${what}`, async () => {
      expect(await failures(files)).to.include(title)
    })

  it('finds requests without a permission, and permissions that no page gets', async () => {
    expect(await failures(GOOD, {}, ['GET /notes'])).to.deep.equal([
      'console page notes: sends only requests that the manifest lists',
    ])
    const rights = ['GET /notes', 'DELETE /notes/*', 'POST /api/v1/tokens']
    expect(await failures(GOOD, {}, rights)).to.deep.equal(['console pages: each declared request is one that a page can send'])
  })

  it('finds a package that leaves its pages out', async () => {
    expect(await failures(GOOD, { files: ['dist'] })).to.deep.equal(['console pages: the package contains their folder'])
  })

  const VIEW = 'console page notes: has a view that the console can draw'
  const table = { type: 'table', title: 'Notes', request: 'GET /notes', columns: [{ title: 'Text', value: 'text' }] }
  const remove = { title: 'Remove', request: 'DELETE /notes/{row.id}' }
  const ofView = (view: object | string, page: object = {}) =>
    failures({ 'console/notes.json': typeof view === 'string' ? view : JSON.stringify(view) }, {}, undefined, {
      view: 'notes.json',
      ...page,
    })

  it('accepts a view that the console can draw', async () => {
    expect(
      await ofView({
        parts: [
          { type: 'markdown', text: '# Notes' },
          { ...table, actions: [remove] },
        ],
      })
    ).to.deep.equal([])
    expect(await ofView({ parts: [{ ...table, query: { run: '{run}' } }] }, { place: 'run' })).to.deep.equal([])
  })

  for (const [what, view] of [
    ['a view that is not JSON', '{'],
    ['a view without parts', {}],
    ['an unknown part', { parts: [{ type: 'html', text: '<b>' }] }],
    ['an unknown member', { parts: [{ ...table, onclick: 'go()' }] }],
    ['a request without a permission', { parts: [{ ...table, request: 'GET /other' }] }],
    ['an action without a permission', { parts: [{ ...table, actions: [{ ...remove, request: 'POST /notes' }] }] }],
    ['the id of a run where there is none', { parts: [{ ...table, query: { run: '{run}' } }] }],
    ['a value of a row where there is none', { parts: [{ ...table, request: 'GET /notes/{row.id}' }] }],
  ] as const)
    it(`finds ${what}`, async () => {
      expect(await ofView(view)).to.deep.equal([VIEW])
    })

  it('finds a view that is not there', async () => {
    expect(await failures({}, {}, undefined, { view: 'none.json' })).to.deep.equal([VIEW])
  })

  it('knows no page that is both an app and a view, and no other place', async () => {
    for (const page of [{ file: 'index.html' }, { place: 'login' }, { view: '../notes.json' }])
      await ofView({ parts: [table] }, page).then(
        () => expect.fail('accepted'),
        (error: { code?: string }) => expect(error.code).to.equal('MANIFEST_INVALID')
      )
  })

  describe('for results of tools', () => {
    const RESULT = 'console page notes: shows the result of its tools'
    const place = { place: 'tool_result', tools: ['note'] }
    const own = { tools: ['note'] }
    const stats = { type: 'stats', stats: [{ title: 'Text', value: 'text' }] }
    const ofResult = (...parts: object[]) =>
      failures({ 'console/notes.json': JSON.stringify({ parts }) }, {}, undefined, { view: 'notes.json', ...place }, own)

    it('accepts views and apps that show the result', async () => {
      expect(await ofResult(stats, { type: 'markdown', value: 'text' }, table)).to.deep.equal([])
      const code = { ...GOOD, 'console/page.js': 'void svc.ready.then(() => show(svc.context().result))' }
      expect(await failures(code, {}, undefined, place, own)).to.deep.equal([])
    })

    it('finds those that do not', async () => {
      expect(await ofResult({ type: 'markdown', text: 'Always the same' }, table)).to.deep.equal([RESULT])
      expect(await failures(GOOD, {}, undefined, place, own)).to.deep.equal([RESULT])
    })

    it('finds a part without a request in another place, and a cursor or query without one', async () => {
      expect(await ofView({ parts: [stats] })).to.deep.equal([VIEW])
      const list = { type: 'table', title: 'Notes', columns: table.columns }
      expect(await ofResult(list)).to.deep.equal([])
      expect(await ofResult({ ...list, cursor: 'next' })).to.deep.equal([VIEW])
      expect(await ofResult({ ...list, query: { limit: 1 } })).to.deep.equal([VIEW])
    })

    it('reads no package that claims a tool of another', async () => {
      const error = await failures(GOOD, {}, undefined, { place: 'tool_result', tools: ['calculate'] }, own).catch(String)
      expect(error).to.contain('which the plugin does not declare')
    })
  })
})
