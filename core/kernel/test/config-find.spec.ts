import { utimes } from 'node:fs/promises'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import { findConfig, shownPath, svcHome } from '@svc/core'
import { expect } from 'chai'
import { findIn, folder, problemsOf } from './support/kernel.ts'

/** The only thing that could not be read. */
const problemIn = async (found: ReturnType<typeof findConfig>) => {
  const { problems } = await found
  expect(problems).to.have.length(1)
  return problems[0]!
}

describe('finding configuration', () => {
  it('takes the nearest file upward', async () => {
    const { value } = await findIn({ 'svc.config.yaml': 'a: far', 'project/svc.config.yaml': 'a: near' })
    expect(value).to.deep.equal({ a: 'near' })
  })

  it('is content with no file at all', async () => {
    await using dir = await folder()
    const config = await findConfig({ home: dir.file('home'), cwd: dir.path, file: undefined as never })
    expect(config.plugins).to.deep.equal([])
  })

  it("lets --config replace the project's file, not the home's", async () => {
    const files = { 'home/svc.config.yaml': 'h: 1', 'project/svc.config.yaml': 'a: 1', 'other.yaml': 'b: 1' }
    expect((await findIn(files, { file: 'other.yaml' })).value).to.deep.equal({ h: 1, b: 1 })
  })

  it('notes a file beside that of --config which it would read otherwise', async () => {
    const files = { 'project/svc.config.yaml': 'a: 1', 'project/svc.config.json': '{ "b": 1 }', 'project/staging.yaml': 'c: 1' }
    const { value, problems, notes } = await findIn(files, { file: 'project/svc.config.json' })
    expect([value, problems]).to.deep.equal([{ b: 1 }, []])
    expect(notes?.map(({ code, message }) => [code, message])).to.deep.equal([
      ['CONFIG_IGNORED', 'svc ignores ../svc.config.yaml, because it was started with the configuration file ../svc.config.json'],
    ])
    // a file with another name is meant to stand beside others
    expect((await findIn(files, { file: 'project/staging.yaml' })).notes).to.deep.equal([])
    expect((await findIn({ 'project/svc.config.yaml': 'a: 1' }, { file: 'project/svc.config.yaml' })).notes).to.deep.equal([])
  })

  it('says when the file of --config is not there, or of no known form', async () => {
    expect(await problemIn(findIn({}, { file: 'gone.yaml' }))).to.include({
      code: 'CONFIG_UNREADABLE',
      message: 'the file does not exist',
    })
    const error = await problemIn(findIn({ 'my.conf': 'a: 1' }, { file: 'my.conf' }))
    expect(error.code).to.equal('CONFIG_UNREADABLE')
    expect(error.message).to.include('.yaml')
  })

  for (const [name, text] of Object.entries({
    'svc.config.ts': 'const port: number = 1\nexport default { server: { port } }',
    'svc.config.mts': 'const port: number = 1\nexport default { server: { port } }',
    'svc.config.js': 'export default { server: { port: 1 } }',
    'svc.config.json': '{ "server": { "port": 1 } }',
    'svc.config.yaml': 'server:\n  port: 1',
  }))
    it(`reads ${name}`, async () => {
      expect((await findIn({ [`project/${name}`]: text, 'project/package.json': { type: 'module' } })).value).to.deep.equal({
        server: { port: 1 },
      })
    })

  it('takes an empty file for a configuration without keys', async () => {
    for (const text of ['', '\n', '# only a comment\n'])
      expect((await findIn({ 'svc.config.yaml': 'a: 1', 'project/svc.config.yaml': text })).value).to.deep.equal({})
  })

  const BROKEN: Record<string, [text: string, where: string, told: string]> = {
    'svc.config.yaml': ['a: 1\nb: [1, 2\nc: 3\n', 'svc.config.yaml:3', 'Flow sequence'],
    'svc.config.json': ['{\n  "a": 1,\n  "a": 2\n}', 'svc.config.json:3', 'unique'],
    'svc.config.ts': ['export default {\n  a: 1,\n  b: = 2\n}', 'svc.config.ts:3', 'Expression expected'],
    'svc.config.mts': ['const a = 1\n\nthrow new Error("no luck")\nexport default {}', 'svc.config.mts:3', 'no luck'],
  }
  for (const [name, [text, where, reported]] of Object.entries(BROKEN))
    it(`tells the line of what is broken in ${name}`, async () => {
      const error = await problemIn(findIn({ [`project/${name}`]: text, 'project/package.json': { type: 'module' } }))
      expect(error).to.include({ code: 'CONFIG_UNREADABLE', where: `../${where}` })
      expect(error.message).to.include(reported)
      expect(error.hint).to.include('Fix the file')
    })

  it('tells the line of an alias that YAML takes a star for', async () => {
    const error = await problemIn(findIn({ 'project/svc.config.yaml': 'server:\n  allowed_hosts:\n    - *.example.com\n' }))
    expect(error).to.include({ code: 'CONFIG_UNREADABLE', where: '../svc.config.yaml:3' })
    expect(error.message).to.include('quote text')
  })

  it('refuses a file that holds no object', async () => {
    for (const [name, text] of [
      ['svc.config.yaml', '- 1'],
      ['svc.config.json', '5'],
      ['svc.config.mts', 'export const a = 1'],
    ] as const)
      expect(await problemIn(findIn({ [`project/${name}`]: text }))).to.include({
        code: 'CONFIG_UNREADABLE',
        where: `../${name}`,
      })
  })

  it('refuses two files in one folder, of which one would silently win', async () => {
    const files = { 'project/svc.config.yaml': 'a: 1', 'project/svc.config.json': '{"a": 2}' }
    const error = await problemIn(findIn(files))
    expect(error).to.include({ code: 'CONFIG_AMBIGUOUS', where: '../svc.config.json' })
    expect(error.message).to.include('../svc.config.json and ../svc.config.yaml')
    expect(error.hint).to.include('Keep one').and.include('remove ../svc.config.yaml')
    expect((await findIn({ ...files, 'other.yaml': 'a: 3' }, { file: 'other.yaml' })).problems).to.deep.equal([])
    const { problems } = await findIn({ 'home/svc.config.yaml': 'a: 1', 'home/svc.config.mts': 'export default {}' })
    expect(problems.map(problem => problem.code)).to.deep.equal(['CONFIG_AMBIGUOUS'])
  })

  it('tells all files that cannot be read, and goes on with what can be', async () => {
    const files = { 'home/svc.config.yaml': '{', 'project/svc.config.yaml': '- 1' }
    const { problems, value } = await findIn(files, { env: { SVC_A__B: '1' } })
    expect(problems.map(problem => problem.code)).to.deep.equal(['CONFIG_UNREADABLE', 'CONFIG_UNREADABLE'])
    expect(value).to.deep.equal({ a: { b: 1 } })
    expect((await problemsOf({ config: await findIn(files) })).map(problem => problem.code)).to.deep.equal([
      'CONFIG_UNREADABLE',
      'CONFIG_UNREADABLE',
    ])
  })

  it('tells files of one name apart: from the current folder, in the home, anywhere else', () => {
    expect(shownPath('/p/a/svc.config.yaml', '/p/a', '/h')).to.equal('svc.config.yaml')
    expect(shownPath('/p/svc.config.yaml', '/p/a', '/h')).to.equal('../svc.config.yaml')
    expect(shownPath('/h/svc.config.yaml', '/p/a', '/h')).to.equal('/h/svc.config.yaml')
    expect(shownPath(join(homedir(), '.svc/svc.config.yaml'), '/p', join(homedir(), '.svc'))).to.equal('~/.svc/svc.config.yaml')
  })

  it('takes an empty HOME for none', () => {
    const home = process.env.HOME
    try {
      process.env.HOME = ''
      expect(svcHome({})).to.equal(join(userInfo().homedir, '.svc'))
    } finally {
      if (home === undefined) delete process.env.HOME
      else process.env.HOME = home
    }
  })

  it('sees what changed in a module since it was read', async () => {
    await using dir = await folder({ 'svc.config.mts': 'export default { a: 1 }' })
    const read = async () => (await findConfig({ home: dir.file('home'), cwd: dir.path, env: { SVC_TRUST_CONFIG: '1' } })).value.a
    expect(await read()).to.equal(1)
    const file = await dir.write('svc.config.mts', 'export default { a: 2 }')
    await utimes(file, 1000, 2000)
    expect(await read()).to.equal(2)
  })
})
