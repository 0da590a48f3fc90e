import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'
import { until } from '../support/wait.ts'

const PLUGIN = fileURLToPath(new URL('../support/call-tools.ts', import.meta.url))
const SOURCE = '/api/v1/workflows/source'
const VALIDATE = '/api/v1/workflows/validate'
const QUESTIONS = '/api/v1/workflows/questions'

const GREET = `# says hello, and asks before
name: greet
inputs: { type: object, properties: { who: { type: string } } }
nodes:
  # a person decides
  ask:
    type: human
    message: May I greet?
    branches: { approved: say, rejected: end }
  say:
    type: transform
    value: hello \${{ input.who }}
`

interface Shown {
  readonly name: string
  readonly source: string
  readonly text: string | null
  readonly version: string
  readonly writable: boolean
  readonly format: string
}
interface Problem {
  readonly message: string
  readonly path: string
  readonly line: number | null
  readonly column: number | null
}
interface Question {
  readonly workflow_id: string
  readonly owner: string
  readonly step: string
  readonly answer_url: string
}

describe('workflows over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [admin, runner, other, reader]: Managed[] = []
  const folder = (...names: string[]) => join(home, 'flows', ...names)

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    await mkdir(folder('deep'), { recursive: true })
    await mkdir(folder('code'))
    await mkdir(join(home, 'outside'))
    await writeFile(folder('greet.yaml'), GREET)
    await writeFile(
      folder('deep', 'plain.json'),
      JSON.stringify({ name: 'plain', nodes: { a: { type: 'transform', value: 1 } } })
    )
    await writeFile(
      folder('code', 'typed.ts'),
      "export default { name: 'typed', nodes: { a: { type: 'transform', value: 1 } } }\n"
    )
    await writeFile(folder('code', 'beside.yaml'), 'name: beside\nnodes: { a: { type: transform, value: 1 } }\n')
    await writeFile(folder('left.ts'), 'export default {}\n')
    await writeFile(join(home, 'outside', 'secret.yaml'), 'name: linked\nnodes: { a: { type: transform, value: secret } }\n')
    await symlink(join(home, 'outside', 'secret.yaml'), folder('linked.yaml'))
    await symlink(folder('greet.yaml'), folder('inner.yaml'))
    await symlink(join(home, 'outside'), folder('way'))
    await mkdir(join(home, 'workflows', 'taken.yaml'), { recursive: true })
    await symlink(join(home, 'outside', 'new.yaml'), join(home, 'workflows', 'dangling.yaml'))
    const config = { workflows: { roots: ['flows'], code: ['flows/code'], sync_wait_ms: 200 }, plugins: [PLUGIN] }
    managed = await startManaged(home, { config, workers: 2 })
    admin = await managed.as('admin', 'admin,read,workflows')
    runner = await managed.as('runner', 'workflows,read,tools')
    other = await managed.as('other', 'workflows,read')
    reader = await managed.as('reader', 'read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })
  const source = async (name: string, by = runner!) => (await by.get(`${SOURCE}?workflow=${name}`)).body as Shown
  const save = (name: string, text: unknown, headers: Record<string, string> = { 'if-none-match': '*' }, by = admin!) =>
    by.send('PUT', `${SOURCE}?workflow=${encodeURIComponent(name)}`, { text }, headers)
  const flow = (name: string, value: string | number = 1) => `name: ${name}\nnodes: { a: { type: transform, value: ${value} } }\n`

  describe('that an attacker writes', () => {
    it('stay in the roots: no path, link, code or foreign name', async () => {
      const greet = await readFile(folder('greet.yaml'), 'utf8')
      const bad: readonly (readonly [string, number])[] = [
        ['../evil', 400],
        ['..%2fevil', 400],
        ['/etc/cron.d/evil', 400],
        ['deep/evil', 400],
        ['evil.yaml', 400],
        ['evil.ts', 400],
        ['Evil', 400],
        ['__proto__', 400],
        ['a'.repeat(65), 400],
        ['evil\n', 400],
        ['evil\u0000', 400],
        ['', 400],
        ['linked', 403],
        ['inner', 403],
        ['dangling', 403],
        ['taken', 403],
        ['typed', 403],
        ['beside', 403],
        ['left', 403],
      ]
      for (const [name, status] of bad) {
        const version = name === 'inner' ? (await source('greet')).version : 'x'
        for (const headers of [{ 'if-none-match': '*' }, { 'if-match': `"${version}"` }] as Record<string, string>[])
          expect(
            outcomeOf(await save(name, flow('evil'), headers)).status,
            `${JSON.stringify(name)} ${JSON.stringify(headers)}`
          ).to.equal(status)
      }
      expect(await readdir(join(home, 'outside'))).to.deep.equal(['secret.yaml'])
      expect(await readFile(join(home, 'outside', 'secret.yaml'), 'utf8')).to.include('secret')
      expect(await readFile(folder('greet.yaml'), 'utf8')).to.equal(greet)
      expect((await lstat(join(home, 'workflows', 'dangling.yaml'))).isSymbolicLink()).to.equal(true)
      for (const name of ['linked', 'way/secret.yaml', '../outside/secret.yaml', '/etc/passwd', '%00'])
        expect(outcomeOf(await runner!.get(`${SOURCE}?workflow=${name}`)).status, name).to.be.oneOf([400, 404])
    })

    it('never run, whatever a draft names', async () => {
      const drafts = [
        'name: evil\nnodes: { a: { type: tool, name: writes, arguments: {} } }',
        'name: evil\nnodes: { a: { type: tool, name: run_command, arguments: { command: touch owned } } }',
        'name: evil\ncommand: /bin/sh\nargs: [-c, touch owned]\nnodes: { a: { type: transform, value: 1 } }',
        'name: evil\nnodes: { a: { type: mcp, command: /bin/sh, args: [-c, "touch owned"] } }',
        'name: evil\nnodes: { a: !!js/function "function(){ return process.exit() }" }',
        'name: evil\nnodes: { a: { type: transform, value: "${{ process.exit() }}" } }',
        'name: evil\n__proto__: { polluted: true }\nconstructor: { prototype: { polluted: true } }\nnodes: { __proto__: { type: transform } }',
        'export default { name: "evil", nodes: {} }',
      ]
      const before = (await runner!.get('/api/v1/workflows/runs')).text
      for (const draft of drafts) {
        const { status, body, text } = await runner!.send('POST', VALIDATE, { text: draft })
        expect(status, text).to.equal(200)
        const { valid, problems } = body as { valid: boolean; problems: Problem[] }
        if (!draft.includes('type: tool')) expect(valid, draft).to.equal(false)
        for (const { line, column } of problems)
          expect(
            [line, column].every(at => at === null || at > 0),
            text
          ).to.equal(true)
      }
      expect((await runner!.get('/api/v1/me')).text).to.not.include('polluted')
      for (const draft of drafts.slice(2)) expect(outcomeOf(await save('evil', draft)).status, draft).to.equal(400)
      expect(await readdir(home)).to.not.include('owned')
      expect((await runner!.get('/api/v1/workflows/runs')).text).to.equal(before)
    })

    it('are refused when they are huge, nested or bombs of aliases, and hold no worker for long', async () => {
      const laughs = [
        'a: &a [x, x, x, x, x, x, x, x, x, x]',
        ...'bcdefghi'.split('').map((letter, at) => {
          const before = 'abcdefgh'[at]
          return `${letter}: &${letter} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]`
        }),
      ].join('\n')
      const heavy = {
        'a bomb': `name: bomb\nnodes: { a: { type: transform, value: 1 } }\n${laughs}\n`,
        'a cycle': 'name: bomb\nnodes: &n { a: { type: transform, value: *n } }\n',
        'a deep list': `name: bomb\nnodes: ${'['.repeat(5_000)}${']'.repeat(5_000)}\n`,
        'a deep map': `name: bomb\nnodes: ${'{ a: '.repeat(3_000)}1${' }'.repeat(3_000)}\n`,
        'many keys': `name: bomb\nnodes: { a: { type: transform, value: 1 } }\n${Array.from({ length: 25_000 }, (_, at) => `k${at}: 1`).join('\n')}\n`,
        'a slow pattern': `name: bomb\ninputs: { type: object, properties: { x: { type: string, pattern: "^(a+)+$", default: "${'a'.repeat(40)}!" } } }\nparameters: { p: { type: string, pattern: "^(a+)+$", default: "${'a'.repeat(40)}!" } }\nnodes: { a: { type: transform, value: 1 } }\n`,
        'a slow expression': `name: bomb\nnodes: { a: { type: transform, value: "\${{ ${'('.repeat(2_000)}1${')'.repeat(2_000)} }}" } }\n`,
      }
      for (const [what, draft] of Object.entries(heavy)) {
        const begun = performance.now()
        const answer = await runner!.send('POST', VALIDATE, { text: draft })
        expect(answer.status, what).to.equal(200)
        expect((answer.body as { valid: boolean }).valid, what).to.equal(false)
        expect(answer.text.length, what).to.be.lessThan(4_000_000)
        expect(performance.now() - begun, what).to.be.lessThan(10_000)
      }
      const large = `name: bomb\n# ${'x'.repeat(270_000)}\n`
      expect(outcomeOf(await runner!.send('POST', VALIDATE, { text: large })), 'large').to.include({ status: 400, field: 'text' })
      expect(outcomeOf(await save('bomb', large)).status).to.equal(400)
      const body = { text: 'x'.repeat(5_000_000) }
      expect(outcomeOf(await runner!.send('POST', VALIDATE, body)).status, 'too large a body').to.equal(413)
      const { body: listed } = await runner!.get('/api/v1/workflows')
      expect((listed as { workflows: { name: string }[] }).workflows.map(({ name }) => name)).to.not.include('bomb')
    })

    it('do not undo the change of another: a stale, missing or foreign version is refused', async () => {
      const { version } = await source('plain')
      const text = JSON.stringify({ name: 'plain', nodes: { a: { type: 'transform', value: 2 } } })
      const bad: readonly (readonly [Record<string, string>, number, string | undefined])[] = [
        [{}, 400, 'MISSING_FIELD'],
        [{ 'if-match': version }, 400, 'INVALID_VALUE'],
        [{ 'if-match': `W/"${version}"` }, 412, 'PRECONDITION_FAILED'],
        [{ 'if-match': `"${version}"`, 'if-none-match': '*' }, 400, 'INVALID_VALUE'],
        [{ 'if-none-match': '"x"' }, 400, 'INVALID_VALUE'],
        [{ 'if-none-match': '*' }, 412, 'PRECONDITION_FAILED'],
        [{ 'if-match': '"new"' }, 412, 'PRECONDITION_FAILED'],
        [{ 'if-match': `"${(await source('greet')).version}"` }, 412, 'PRECONDITION_FAILED'],
      ]
      for (const [headers, status, code] of bad)
        expect(outcomeOf(await save('plain', text, headers)), JSON.stringify(headers)).to.include({ status, code })
      expect(
        outcomeOf(await save('plain', flow('plain'), { 'if-match': `"${version}"` })).status,
        'YAML in a JSON file'
      ).to.equal(400)
      const both = await Promise.all([1, 2].map(() => save('plain', text, { 'if-match': `"${version}"` })))
      expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([200, 412])
      expect(outcomeOf(await save('absent', flow('absent'), { 'if-match': `"${version}"` }))).to.include({ status: 412 })
      expect(outcomeOf(await save('absent', flow('absent'), { 'if-match': '*' }))).to.include({ status: 412 })
      expect((await save('plain', text, { 'if-match': '*' })).status, 'any version').to.equal(200)
      const fresh = await Promise.all([1, 2, 3].map(at => save('fresh', flow('fresh', at))))
      expect(fresh.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([200, 412, 412])
    })

    it('need the scope, and every field is checked', async () => {
      expect(outcomeOf(await save('greet', GREET, { 'if-none-match': '*' }, runner)).status).to.equal(403)
      expect(outcomeOf(await reader!.get('/api/v1/workflows/drawing?workflow=greet')).status).to.equal(403)
      for (const path of [`${SOURCE}?workflow=greet`, '/api/v1/workflows/schema', '/api/v1/workflows/nodes'])
        expect(outcomeOf(await reader!.get(path)).status, path).to.equal(403)
      expect(outcomeOf(await reader!.send('POST', VALIDATE, { text: 'x' })).status).to.equal(403)
      for (const [path, status] of [
        [SOURCE, 400],
        [`${SOURCE}?workflow=none`, 404],
        [`${SOURCE}?workflow=greet&x=1`, 400],
        ['/api/v1/workflows/drawing', 400],
        ['/api/v1/workflows/drawing?workflow=none', 404],
        ['/api/v1/workflows/drawing?run=none', 404],
        ['/api/v1/workflows/schema?x=1', 400],
        ['/api/v1/workflows/svg?workflow=greet&format=png', 400],
        ['/api/v1/workflows/svg?workflow=none', 404],
        ['/api/v1/workflows/drawing?workflow=greet&run=none', 404],
        ['/api/v1/workflows/nodes?x=1', 400],
        [`${QUESTIONS}?limit=0`, 400],
        [`${QUESTIONS}?limit=201`, 400],
        [`${QUESTIONS}?cursor=garbage`, 400],
      ] as const)
        expect(outcomeOf(await admin!.get(path)).status, path).to.equal(status)
      for (const body of [{}, { text: 7 }, { text: ['x'] }, { text: 'x', file: ' ' }, { text: 'x', run: true }])
        expect(outcomeOf(await runner!.send('POST', VALIDATE, body)).status, JSON.stringify(body)).to.equal(400)
      expect(outcomeOf(await save('greet', 7)).status).to.equal(400)
    })
  })

  it('are read and saved with their comments, the same at each worker', async () => {
    const shown = await source('greet')
    expect(shown).to.deep.include({ name: 'greet', source: 'greet.yaml', format: 'yaml', text: GREET, writable: true })
    expect(await source('deep/plain.json')).to.deep.include({ name: 'plain', source: 'deep/plain.json', format: 'json' })
    expect(await source('typed')).to.deep.include({ text: null, format: 'code', writable: false })
    const changed = GREET.replace('# a person decides', '# a person decides, always')
    const saved = await save('greet', changed, { 'if-match': `"${shown.version}"` })
    expect(saved.status, saved.text).to.equal(200)
    expect(saved.headers.etag).to.equal(`"${(saved.body as Shown).version}"`)
    expect(await readFile(folder('greet.yaml'), 'utf8')).to.equal(changed)
    const answers = await Promise.all(Array.from({ length: 10 }, () => runner!.get(`${SOURCE}?workflow=greet`)))
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
    expect(answers[0]!.text).to.include('always').and.not.include(home)
    const made = await save('made', flow('made'))
    expect(made.body, made.text).to.deep.include({ name: 'made', source: 'made.yaml', writable: true })
    expect(await readFile(join(home, 'workflows', 'made.yaml'), 'utf8')).to.equal(flow('made'))
    expect((await readdir(join(home, 'workflows'))).filter(name => /made/.test(name))).to.deep.equal(['made.yaml'])
    const run = await runner!.send('POST', '/api/v1/workflows/run', { workflow: 'made' })
    expect(run.body, run.text).to.include({ status: 'completed' })
    // the definition of a plugin can be read, and a file of its name stands before it
    const { workflows } = (await runner!.get('/api/v1/workflows')).body as { workflows: { name: string; source: string }[] }
    const given = workflows.find(one => one.source.startsWith('@svc/'))
    if (given) expect(await source(given.name)).to.deep.include({ format: 'json', writable: false })
    const wrong = await save('other', flow('another'))
    expect(outcomeOf(wrong)).to.include({ status: 400 })
    expect(wrong.text).to.include('the name of its file')
  })

  it('are drawn, as data and as SVG, and checked with line and column', async () => {
    const drawing = (await runner!.get('/api/v1/workflows/drawing?workflow=greet')).body as {
      nodes: { id: string; edges: object[] }[]
    }
    expect(drawing.nodes.map(({ id }) => id)).to.deep.equal(['ask', 'say'])
    expect(drawing.nodes[0]!.edges[0]).to.deep.equal({ to: 'say', label: 'approved', kind: 'next' })
    const svg = await runner!.get('/api/v1/workflows/svg?workflow=greet')
    expect(svg.headers['content-type']).to.match(/^image\/svg\+xml/)
    expect(svg.headers['content-security-policy']).to.include('sandbox')
    expect(svg.text).to.match(/^<svg/)
    const text = 'name: draft\nnodes:\n  a:\n    type: transform\n    value: 1\n    next: nowhere\n  b: { type: nothing }\n'
    const { body } = await runner!.send('POST', VALIDATE, { text, file: 'draft.yaml' })
    const {
      valid,
      problems,
      drawing: drawn,
    } = body as { valid: boolean; problems: Problem[]; drawing: { nodes: { id: string }[] } }
    expect(valid).to.equal(false)
    expect(problems.find(({ path }) => path === 'nodes.a.next')).to.include({ line: 6, column: 5 })
    expect(problems.find(({ path }) => path === 'nodes.b.type')).to.include({ line: 7, column: 8 })
    expect(drawn.nodes.map(({ id }) => id)).to.include.members(['a', 'b'])
    const good = await runner!.send('POST', VALIDATE, { text: flow('draft') })
    expect(good.body).to.deep.include({ valid: true, problems: [] })
    const { nodes } = (await runner!.get('/api/v1/workflows/nodes')).body as {
      nodes: { type: string; settings: { type: string } }[]
    }
    expect(nodes.map(({ type }) => type)).to.include.members(['agent', 'human', 'parallel', 'tool', 'transform'])
    expect(nodes.every(({ settings }) => settings.type === 'object')).to.equal(true)
    const { required, $defs } = (await runner!.get('/api/v1/workflows/schema')).body as {
      required: string[]
      $defs: { node: { properties: { type: { enum: string[] } } } }
    }
    expect(required).to.deep.equal(['name', 'nodes'])
    expect($defs.node.properties.type.enum).to.deep.equal(nodes.map(({ type }) => type))
  })

  it('are drawn for a run as it is, also when the text has changed since', async () => {
    expect((await save('drawn', flow('drawn'))).status).to.equal(200)
    const { body } = await runner!.send('POST', '/api/v1/workflows/run', { workflow: 'drawn' })
    const { workflow_id: run } = body as { workflow_id: string }
    const added = 'added: { type: transform, value: 2 }'
    const changed = `name: drawn\nnodes: { a: { type: transform, value: 1, next: added }, ${added} }\n`
    expect((await save('drawn', changed, { 'if-match': '*' })).status).to.equal(200)
    const drawn = async (query: string) =>
      ((await runner!.get(`/api/v1/workflows/drawing?${query}`)).body as { nodes: { id: string; status: string | null }[] }).nodes
    const [before, now] = [await drawn(`run=${run}`), await drawn('workflow=drawn')]
    expect(now.map(({ id }) => id)).to.include('added')
    expect(before.map(({ id }) => id)).not.to.include('added')
    expect(before.map(({ status }) => status)).to.include('completed')
    expect(outcomeOf(await other!.get(`/api/v1/workflows/drawing?run=${run}`)).status).to.equal(404)
  })

  it('ask in one list: own questions, for an administrator all, and those of chats', async () => {
    const start = async (by: Managed) =>
      ((await by.send('POST', '/api/v1/workflows/run', { workflow: 'greet', input: { who: 'x' } })).body as Question).workflow_id
    const [mine, theirs] = [await start(runner!), await start(other!)]
    const listed = async (by: Managed, query = '') =>
      (await by.get(QUESTIONS + query)).body as {
        questions: Question[]
        chats: { call_id: string; answerable: boolean; answer_url: string }[]
        next_cursor: string | null
      }
    const ids = async (by: Managed) => (await listed(by)).questions.map(({ workflow_id }) => workflow_id)
    expect(await ids(runner!)).to.deep.equal([mine])
    expect(await ids(other!)).to.deep.equal([theirs])
    expect(await ids(admin!)).to.have.members([mine, theirs])
    expect(await ids(reader!)).to.deep.equal([])
    const first = await listed(admin!, '?limit=1')
    expect(first.questions).to.have.lengthOf(1)
    const second = await listed(admin!, `?limit=1&cursor=${encodeURIComponent(first.next_cursor!)}`)
    expect([first, second].flatMap(({ questions }) => questions.map(({ workflow_id }) => workflow_id))).to.have.members([
      mine,
      theirs,
    ])
    const [question] = (await listed(runner!)).questions
    expect(question).to.deep.include({ owner: 'token:runner', step: 'ask', kind: 'approval', message: 'May I greet?' })
    const drawn = (await runner!.get(`/api/v1/workflows/drawing?workflow=greet&run=${mine}`)).text
    expect(drawn).to.include('"status":"waiting"')
    expect(outcomeOf(await other!.get(`/api/v1/workflows/drawing?workflow=greet&run=${mine}`)).status).to.equal(404)
    const stream = await runner!.stream('POST', '/api/v1/tools/consent/call', { interactive: true })
    const asked = (await stream.until('ask')).at(-1)!.data as { question_id: string }
    const ten = await Promise.all(Array.from({ length: 10 }, () => listed(runner!)))
    for (const { chats } of ten) expect(chats.map(({ call_id }) => call_id)).to.deep.equal([asked.question_id])
    expect((await listed(other!)).chats).to.deep.equal([])
    expect((await listed(admin!)).chats[0]).to.include({ answerable: false })
    const [open] = ten[0]!.chats as unknown as { request_id: string; answer_url: string }[]
    const answer = { request_id: open!.request_id, question_id: asked.question_id, allow: true }
    expect((await runner!.send('POST', open!.answer_url, answer)).status).to.equal(200)
    await stream.rest()
    expect((await listed(runner!)).chats).to.deep.equal([])
    for (const [by, { answer_url, step }] of [
      [runner!, question!],
      [other!, (await listed(other!)).questions[0]!],
    ] as const)
      expect((await by.send('POST', answer_url, { step, value: true })).status).to.equal(200)
    await until(
      () => ids(admin!),
      left => left.length === 0
    )
  })
})
