// Not a unit test: it serves HTTP.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import {
  Checks,
  MetricSources,
  type Tool,
  Tools,
  type WorkflowDefinition,
  WorkflowDefinitions,
  Workflows,
} from '@svc/core/contracts'
import { item, testHost } from '@svc/testing'
import { expect } from 'chai'
import { inFolder, node, openEngine, plugin, quiet, ran, until, ctx, waitingRun } from './support.ts'

const ASKS: WorkflowDefinition = { name: 'asks', nodes: { ask: { type: 'human', message: '?' } } }
const calls = (name: string, workflow: string) => ({ name, nodes: { call: { type: 'subworkflow', workflow } } })

describe('what workflows name', () => {
  it('is looked for among workflows of plugins and files, as they are now', () =>
    inFolder(async folder => {
      const [roots, text] = [[join(folder, 'flows')], JSON.stringify(calls('outer', 'inner'))]
      const give = [item(WorkflowDefinitions, 'asks', ASKS)]
      await using host = await openEngine({ give, config: { workflows: { roots } } })
      const workflows = host.service(Workflows)
      const problems = async () => (await workflows.validate({ text }, ctx)).map(({ message, hint }) => `${message}: ${hint}`)
      expect(await problems()).to.deep.equal(['workflow "inner" does not exist: Run `svc workflows list` to see the workflows'])
      await mkdir(roots[0]!)
      await writeFile(join(roots[0]!, 'inne.json'), JSON.stringify({ ...ASKS, name: 'inne' }))
      expect(await problems()).to.deep.equal(['workflow "inner" does not exist: did you mean "inne"?'])
      await writeFile(join(roots[0]!, 'inner.json'), JSON.stringify({ ...ASKS, name: 'inner' }))
      expect(await problems()).to.deep.equal([])
      expect(await workflows.validate({ text: JSON.stringify(calls('outer', 'asks')) }, ctx)).to.deep.equal([])
    }))

  it('is called with what it takes: constants that cannot fit a tool are reported beforehand', async () => {
    const parameters = {
      type: 'object',
      properties: { path: { type: 'string' }, content: { type: 'string' } },
      required: ['path', 'content'],
      additionalProperties: false,
    }
    const write: Tool = {
      description: 'Writes',
      category: 'text',
      effects: ['read'],
      parameters,
      call: async () => ({ content: [] }),
    }
    await using host = await openEngine({ give: [item(Tools, 'write', write)] })
    const problems = async (args: object) => {
      const nodes = { a: { type: 'tool', name: 'write', ...args } }
      return (await host.service(Workflows).validate({ text: JSON.stringify({ name: 'x', nodes }) }, ctx)).map(
        ({ path, message }) => `${path} ${message}`
      )
    }
    expect(await problems({ arguments: { pth: 'x', content: 5 } })).to.have.members([
      'nodes.a.arguments.path is required',
      'nodes.a.arguments.pth is not a known key',
      'nodes.a.arguments.content must be string, was 5',
    ])
    expect(await problems({})).to.have.lengthOf(2)
    expect(await problems({ arguments: { path: '${{ input.path }}', content: 'x' } })).to.deep.equal([])
    expect(await problems({ arguments: '${{ input }}' })).to.deep.equal([])
  })

  it('is called with what it takes: constants that cannot be the input of a workflow are reported beforehand', async () => {
    const inputs = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] }
    const give = [item(WorkflowDefinitions, 'inner', { ...ASKS, name: 'inner', inputs })]
    await using host = await openEngine({ give })
    const problems = async (more: object) => {
      const nodes = { a: { type: 'subworkflow', workflow: 'inner', ...more } }
      return (await host.service(Workflows).validate({ text: JSON.stringify({ name: 'x', nodes }) }, ctx)).map(
        ({ path, message }) => `${path} ${message}`
      )
    }
    expect(await problems({})).to.deep.equal(['nodes.a.input.at is required'])
    expect(await problems({ input: { at: 'soon' } })).to.deep.equal(['nodes.a.input.at must be integer, was text "soon"'])
    for (const at of [1, '${{ input.at }}']) expect(await problems({ input: { at } })).to.deep.equal([])
  })

  it('is held against the files of others as they are, whichever was asked for: input, parameters, and a way back', () =>
    inFolder(async folder => {
      const inner = (inputs: object) => ({
        ...ASKS,
        name: 'inner',
        inputs,
        parameters: { must: { type: 'string' }, may: { type: 'integer', default: 1 } },
      })
      const call = (workflow: string, more: object = {}) => ({ a: { type: 'subworkflow', workflow, ...more } })
      const write = (name: string, definition: object) => writeFile(join(folder, `${name}.json`), JSON.stringify(definition))
      const AT = { type: 'object', properties: { at: { type: 'integer' } }, additionalProperties: false }
      await write('inner', inner(AT))
      await write('outer', {
        name: 'outer',
        nodes: call('inner', { input: { at: 'soon', foo: 1 }, parameters: { may: 'x', other: 1 } }),
      })
      await write('one', { name: 'one', nodes: call('two') })
      await write('two', { name: 'two', nodes: call('one') })
      await using host = await openEngine({ config: { workflows: { roots: [folder] } } })
      const workflows = host.service(Workflows)
      const reported = async (workflow: string) =>
        ((await workflows.show(workflow, ctx)).info.problems ?? []).map(({ path, message }) => `${path} ${message}`)
      expect(await reported('outer')).to.have.members([
        'nodes.a.input.at must be integer, was text "soon"',
        'nodes.a.input.foo is not a known key',
        'nodes.a.parameters.may must be integer, was text "x"',
        'nodes.a.parameters.other is not a known key',
        'nodes.a.parameters.must is required',
      ])
      expect(await reported('one')).to.deep.equal(['nodes.a.workflow the workflow contains itself: one → two → one'])
      expect(await reported('two')).to.deep.equal(['nodes.a.workflow the workflow contains itself: two → one → two'])
      await write('outer', { name: 'outer', nodes: call('inner', { input: { at: 'soon' }, parameters: { must: 'x' } }) })
      expect(await reported('outer')).to.have.lengthOf(1)
      await write('inner', inner({ ...AT, properties: { at: { type: 'string' } } }))
      expect(await reported('outer')).to.deep.equal([])
    }))

  it('is listed once if two roots are the same folder', () =>
    inFolder(async folder => {
      const [root, link] = [join(folder, 'flows'), join(folder, 'link')]
      await mkdir(root)
      await symlink(root, link)
      await writeFile(join(root, 'asks.json'), JSON.stringify({ ...ASKS, name: 'asks' }))
      await using host = await openEngine({ config: { workflows: { roots: [root, link, `${root}/`] } } })
      const listed = await host.service(Workflows).list(ctx)
      expect(listed.filter(({ name }) => name === 'asks')).to.have.lengthOf(1)
    }))

  it('is a file by its path, from a root or from here; what lies outside, behind a link, or is none has one error', () =>
    inFolder(async folder => {
      const root = join(folder, 'flows')
      const text = JSON.stringify({ ...ASKS, name: 'asks' })
      await mkdir(join(root, 'more.yaml'), { recursive: true })
      await mkdir(join(folder, 'out'))
      const files = ['flows/asks.json', 'flows/more.yaml/asks.json', 'flows/notes.md', 'out/asks.json']
      await Promise.all(files.map(file => writeFile(join(folder, file), text)))
      await symlink(join(folder, 'out'), join(root, 'linked'))
      await symlink(join(folder, 'out/asks.json'), join(root, 'link.json'))
      await using host = await openEngine({ config: { workflows: { roots: [root] } } })
      const workflows = host.service(Workflows)
      const here = (path: string) => relative(process.cwd(), join(folder, path))
      for (const good of [
        'asks.json',
        './more.yaml/asks.json',
        'linked/../asks.json',
        here('flows/asks.json'),
        join(root, 'asks.json'),
      ])
        expect((await workflows.show(good, ctx)).definition, good).to.deep.equal(JSON.parse(text))
      const outside = ['../out/asks.json', here('out/asks.json'), join(folder, 'out/asks.json'), join(folder, 'none.json')]
      for (const bad of [...outside, 'linked/asks.json', 'link.json', 'none.json', './notes.md', 'more.yaml', './']) {
        const reported = await workflows.start({ workflow: bad }, ctx).then(
          () => undefined,
          ({ code, message }) => `${code}: ${message}`
        )
        expect(reported).to.equal(`INVALID_VALUE: "${bad}" is not a workflow file in a folder of workflows.roots`)
      }
    }))

  it('is called as its file, or the difference is reported', () =>
    inFolder(async folder => {
      await writeFile(join(folder, 'one.json'), JSON.stringify({ ...ASKS, name: 'two' }))
      await writeFile(join(folder, 'three.mjs'), `export default ${JSON.stringify({ ...ASKS, name: 'four' })}`)
      await using host = await openEngine({ config: { workflows: { roots: [folder], code: [join(folder, 'three.mjs')] } } })
      const listed = (await host.service(Workflows).list(ctx)).map(({ name, problems = [] }) => [name, problems[0]?.message])
      expect(listed).to.deep.equal([
        ['one', 'must be "one", the name of its file'],
        ['three', 'must be "three", the name of its file'],
      ])
    }))

  it('may not lead back to itself, by whatever way', async () => {
    const give = [calls('one', 'two'), calls('two', 'one')].map(entry => item(WorkflowDefinitions, entry.name, entry))
    await using host = await openEngine({ give })
    const [problem] = (await host.service(Workflows).show('one', ctx)).info.problems ?? []
    expect(problem?.message).to.equal('the workflow contains itself: one → two → one')
  })
})

describe('a host that serves without other workers', () => {
  it('takes runs from the queue, too', async () => {
    const plugins = ['http', 'store-memory', 'modes', 'queue-store', 'workflow-nodes', 'workflows'].map(plugin)
    await using host = await testHost(plugins, { config: { server: { port: 0 } } })
    const id = await waitingRun(host, ASKS)
    await quiet(host)
    const workflows = host.service(Workflows)
    await workflows.answer(id, { step: 'ask', value: true }, ctx)
    expect((await workflows.settled(id, 10_000, ctx)).status).to.equal('completed')
  })
})

describe('the figures of runs', () => {
  it('tell what has ended, what is worked on, and what waits; health tells the same', async () => {
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = node(async function* () {
      begun.resolve()
      await end.promise
      yield { type: 'output', output: null }
    })
    const give = [item(WorkflowDefinitions, 'asks', ASKS)]
    await using host = await openEngine({ give, nodes: { slow } })
    const workflows = host.service(Workflows)
    const figure = async (name: string, labels: object = {}) => {
      const families = await host.slot(MetricSources).get('workflows')!.read(ctx)
      const samples = families.flatMap(family => family.values.map(value => ({ name: family.name, ...value })))
      const wanted = samples.filter(sample => (sample.metricName ?? sample.name) === name)
      return wanted.find(sample => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))?.value
    }
    const health = async () => (await host.slot(Checks).get('workflows')!.status!(ctx)).detail
    const [first] = await Promise.all([1, 2].map(() => workflows.start({ workflow: 'asks' }, ctx)))
    const working = await workflows.start({ workflow: { name: 'mine', nodes: { slow: { type: 'slow' } } } }, ctx)
    await begun.promise
    // they are parked in a turn of their own
    await until(async () => (await figure('svc_workflow_runs_active')) === 1)
    expect(await figure('svc_workflow_runs_waiting')).to.equal(2)
    expect(await health()).to.deep.equal({ runs_here: 1, runs_open: 3, runs_waiting: 2 })
    await workflows.answer(first!.id, { step: 'ask', value: true }, ctx)
    await workflows.settled(first!.id, 10_000, ctx)
    end.resolve()
    await workflows.settled(working.id, 10_000, ctx)
    expect(await figure('svc_workflow_runs_total', { workflow: 'asks', status: 'completed' })).to.equal(1)
    // a name that a caller gave for one run is no label
    expect(await figure('svc_workflow_runs_total', { workflow: 'other', status: 'completed' })).to.equal(1)
    await ran(host, { name: 'bad', nodes: { bad: { type: 'transform', value: '${{ input.none.such }}' } } })
    expect(await figure('svc_workflow_runs_total', { workflow: 'other', status: 'failed' })).to.equal(1)
    expect(await figure('svc_workflow_steps_total', { type: 'human', status: 'completed' })).to.equal(1)
    expect(await figure('svc_workflow_steps_total', { type: 'transform', status: 'failed' })).to.equal(1)
    expect(await figure('svc_workflow_step_seconds_count', { type: 'human' })).to.equal(1)
    expect(await figure('svc_workflow_step_seconds_bucket', { type: 'slow', le: '+Inf' })).to.equal(1)
    await until(async () => (await figure('svc_workflow_runs_active')) === 0)
    expect(await health()).to.deep.equal({ runs_here: 0, runs_open: 1, runs_waiting: 1 })
  })
})
