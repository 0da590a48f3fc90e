import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { sideBySide } from './support/side-by-side.ts'
import { makeWorkspace } from '../cli/test/support/svc.ts'

const CAREFUL = fileURLToPath(new URL('fixtures/careful', import.meta.url))

async function carefulPlace() {
  const workspace = await makeWorkspace()
  await workspace.write('svc.config.json', JSON.stringify({ plugins: [CAREFUL] }))
  return workspace
}

interface Listed {
  readonly from: string
  readonly tools: readonly { name: string; category: string; effects?: string[]; schema?: object }[]
}

describe('svc tools list', () => {
  const it = sideBySide()
  it('shows name, category, effects and the first line of each tool without a server', async () => {
    await using workspace = await carefulPlace()
    const { code, out } = await workspace.svc(['tools', 'list'])
    expect(code).to.equal(0)
    expect(out).to.match(/^TOOL +CATEGORY +EFFECTS +DESCRIPTION$/m)
    expect(out).to.match(/^current_time +time +read +Returns the current date/m)
    expect(out).to.match(/^careful_note +tests +write, asks +Does what a test wants$/m)
  })

  it('lists the tools of one category, and lists all categories if the given one is unknown', async () => {
    await using workspace = await carefulPlace()
    const { out } = await workspace.svc(['tools', 'list', '--category', 'time', '--json'])
    const { from, tools } = JSON.parse(out) as Listed
    expect(from).to.equal('the host of this process')
    expect(tools.map(({ name, effects }) => [name, effects])).to.deep.equal([
      ['convert_time', ['read']],
      ['current_time', ['read']],
    ])
    const unknown = await workspace.svc(['tools', 'list', '--category', 'magic'])
    expect(unknown.code).to.equal(2)
    expect(unknown.err).to.match(/^CATEGORY_UNKNOWN\n.*"magic"\n {2}Use one of: .*\btests\b.*\btime\b/m)
  })

  it('asks the server that runs, which has its own tools', async () => {
    await using workspace = await carefulPlace()
    const server = await workspace.serve()
    await workspace.write('svc.config.json', '{}')
    const { out } = await workspace.svc(['tools', 'list', '--json'])
    const { from, tools } = JSON.parse(out) as Listed
    expect(from).to.equal(`the server at ${server.url}`)
    expect(tools.map(tool => tool.name)).to.include('careful_note')
    const local = JSON.parse((await workspace.svc(['tools', 'list', '--json', '--local'])).out) as Listed
    expect(local.tools.map(tool => tool.name)).to.not.include('careful_note')
    expect((await workspace.svc(['tools', 'list'])).out).to.match(/^TOOL +CATEGORY +DESCRIPTION$/m)
    const shown = JSON.parse((await workspace.svc(['tools', 'show', 'careful_note', '--json'])).out) as Record<string, unknown>
    expect(shown).to.deep.include({ from, asks: true, effects: ['write'] })
    expect(shown.schema).to.deep.include({ type: 'object', required: ['text'] })
    await server.end()
  })
})

describe('svc tools show', () => {
  const it = sideBySide()
  it('shows the parameters as a table, the effects, and whether the tool asks', async () => {
    await using workspace = await carefulPlace()
    const { code, out } = await workspace.svc(['tools', 'show', 'careful_note'])
    expect(code).to.equal(0)
    expect(out)
      .to.contain('Does what a test wants\nand says so in two lines.\n')
      .and.match(/^text +string +required$/m)
      .and.match(/^count +integer$/m)
      .and.match(/^effects +write$/m)
      .and.match(/^asks +yes, before/m)
    expect((await workspace.svc(['tools', 'show', 'bad_sleep'])).out).to.match(/^time-out +300 ms$/m)
  })

  it('prints the schema with --json', async () => {
    await using workspace = await carefulPlace()
    const shown = JSON.parse((await workspace.svc(['tools', 'show', 'careful_note', '--json'])).out)
    expect(shown).to.deep.include({ name: 'careful_note', asks: true, effects: ['write'] })
    expect(shown.schema).to.deep.include({ type: 'object', required: ['text'] })
    expect(shown.parameters.text).to.deep.equal({ type: 'string', required: true })
  })

  it('suggests the nearest tool', async () => {
    await using workspace = await carefulPlace()
    const { code, err } = await workspace.svc(['tools', 'show', 'carefull_note'])
    expect([code, err]).to.deep.equal([
      2,
      'TOOL_UNKNOWN\n  there is no tool "carefull_note"\n  Did you mean "careful_note"? Run `svc tools list` to show the tools\n',
    ])
  })
})

describe('svc tools call', () => {
  const it = sideBySide()
  const NOTED = 'noted {"text":"12","count":3,"tags":["a","b"]}\n'

  it('takes a JSON object, pairs, or the standard input, and runs a tool that would ask', async () => {
    await using workspace = await carefulPlace()
    const json = '{"text": "12", "count": 3, "tags": ["a", "b"]}'
    const call = ['tools', 'call', 'careful_note']
    expect(await workspace.svc([...call, json])).to.include({ code: 0, out: NOTED, err: '' })
    expect(await workspace.svc([...call, 'text=12', 'count=3', 'tags=["a","b"]'])).to.include({ code: 0, out: NOTED, err: '' })
    expect(await workspace.svc([...call, '--args', '-'], { input: json })).to.include({ code: 0, out: NOTED, err: '' })
    expect(await workspace.svc([...call, '--args', json])).to.include({ code: 0, out: NOTED })
  })

  it('prints the result with --json', async () => {
    await using workspace = await carefulPlace()
    const good = JSON.parse((await workspace.svc(['tools', 'call', 'current_time', 'time_zone=UTC', '--json'])).out)
    expect(good).to.include({ success: true, tool: 'current_time', is_error: false })
    expect(good.structured_content).to.include({ time_zone: 'UTC' })
    const bad = await workspace.svc(['tools', 'call', 'bad_news', '--json'])
    expect(bad.code).to.equal(1)
    expect(JSON.parse(bad.out)).to.deep.include({
      success: false,
      error_code: 'TOOL_EXECUTION_FAILED',
      details: { tool: 'bad_news', reason: 'the well is dry', content: [{ type: 'text', text: 'the well is dry' }] },
    })
  })

  it('exits with 2 and runs no tool if the arguments are wrong', async () => {
    await using workspace = await carefulPlace()
    const cases: [string[], RegExp][] = [
      [['{"text": '], /the arguments are not valid JSON/],
      [['--args', '[1]'], /must be a JSON object/],
      [['text'], /"text" is neither a JSON object nor key=value/],
      [['=x'], /neither/],
      [['text=a', 'text=b'], /"text" is given twice/],
      [['text=a', '--args', '{}'], /in --args and after the name/],
      [['count=3'], /text must be there|text is missing|required/],
      [['text=a', 'count=few'], /count must be integer/],
      [['text=a', 'tag=x'], /Did you mean "tags"\?/],
      [['text=a', '__proto__=1'], /__proto__ is not a known key/],
    ]
    for (const [args, words] of cases) {
      const { code, out, err } = await workspace.svc(['tools', 'call', 'careful_note', ...args])
      expect([code, out], args.join(' ')).to.deep.equal([2, ''])
      expect(err, args.join(' '))
        .to.match(/^TOOL_ARGUMENTS_INVALID\n/)
        .and.match(words)
    }
    expect((await workspace.svc(['tools', 'call', 'careful_note', '--args', '-'], { input: 'text' })).code).to.equal(2)
    expect((await workspace.svc(['tools', 'call'])).code).to.equal(2)
  })

  it('explains for an unknown tool that tools of MCP servers need a running server', async () => {
    await using workspace = await carefulPlace()
    for (const command of ['call', 'show']) {
      const { code, err } = await workspace.svc(['tools', command, 'notes__search'])
      expect(code).to.equal(2)
      expect(err)
        .to.match(/^TOOL_UNKNOWN\n/)
        .and.contain('Run `svc tools list` to show the tools')
        .and.contain('Only a running server (`svc serve`) has the tools of MCP servers')
    }
  })

  it('checks a pattern of an untrusted schema in linear time', async () => {
    await using workspace = await carefulPlace()
    const call = (text: string) => workspace.svc(['tools', 'call', 'bad_pattern', `text=${text}`])
    expect(await call('aaa')).to.include({ code: 0, out: 'it fits\n' })
    const { code, err } = await call(`${'a'.repeat(34)}b`)
    expect(code).to.equal(2)
    expect(err).to.match(/^TOOL_ARGUMENTS_INVALID\n.*text must match \^\(a\+\)\+\$/m)
  })

  it('exits with 1 if the tool reports a failure, throws, or returns an invalid result', async () => {
    await using workspace = await carefulPlace()
    for (const [name, words] of [
      ['bad_news', 'bad_news: the well is dry'],
      ['bad_throw', 'bad_throw: no water (WELL_DRY)\n  dig deeper'],
      ['bad_answer', 'bad_answer: the tool did not return'],
    ] as const) {
      const { code, out, err } = await workspace.svc(['tools', 'call', name])
      expect([code, out], name).to.deep.equal([1, ''])
      expect(err)
        .to.match(/^TOOL_EXECUTION_FAILED( {2}\S+)?\n/)
        .and.contain(words)
    }
  })

  it('aborts a tool at its time-out, or at --timeout, and exits', async () => {
    await using workspace = await carefulPlace()
    const own = await workspace.svc(['tools', 'call', 'bad_sleep'])
    expect([own.code, own.err]).to.deep.equal([
      1,
      'TIMEOUT\n  bad_sleep took longer than 300 ms\n  Set a longer limit with --timeout <seconds>\n',
    ])
    const given = await workspace.svc(['tools', 'call', 'bad_wait', '--timeout', '0.2', '--json'])
    expect([given.code, JSON.parse(given.out).error_code, given.err]).to.deep.equal([1, 'TIMEOUT', 'waiting\naborted\n'])
    expect((await workspace.svc(['tools', 'call', 'bad_wait', '--timeout', 'soon'])).code).to.equal(2)
  })

  it('gives a tool the time that the configuration gives it', async () => {
    await using workspace = await makeWorkspace()
    await workspace.write('svc.config.json', JSON.stringify({ plugins: [CAREFUL], chat: { tool_timeout_ms: 150 } }))
    expect((await workspace.svc(['tools', 'call', 'bad_wait'])).err).to.contain('bad_wait took longer than 150 ms')
  })

  it('aborts the tool at Ctrl-C and ends with 130', async () => {
    await using workspace = await carefulPlace()
    const child = workspace.start(['tools', 'call', 'bad_wait'])
    let err = ''
    child.stderr!.setEncoding('utf8').on('data', (chunk: string) => (err += chunk))
    await once(child.stderr!, 'data')
    child.kill('SIGINT')
    expect((await once(child, 'close'))[0]).to.equal(130)
    expect(err).to.match(/^waiting\naborted\nINTERRUPTED\n/)
  })
})

describe('svc tools call beside a server', () => {
  it('runs in a host of its own although a server runs', async () => {
    await using workspace = await carefulPlace()
    const server = await workspace.serve()
    const called = await workspace.svc(['tools', 'call', 'careful_note', 'text=x'])
    expect(called).to.include({ code: 0, out: 'noted {"text":"x"}\n' })
    await server.end()
  })
})
