import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { newProject } from '../support/project.ts'

describe('code that a configuration names and other users can write', () => {
  it('is not loaded: a plugin in a file, in a folder, and what a file imports', async () => {
    await using project = await newProject({ plugins: ['./hello.ts', './weather'] })
    const plugin = 'export default { requires: {}, optional: {}, setup() {} }\n'
    const write = async (name: string, text: string) => {
      await mkdir(join(project.at(name), '..'), { recursive: true })
      await writeFile(project.at(name), text)
    }
    await write('hello.ts', `import './shared/value.ts'\n${plugin}`)
    await write('shared/value.ts', 'export const VALUE = 1\n')
    await write(
      'weather/package.json',
      JSON.stringify({ name: 'weather', type: 'module', main: 'index.js', svc: { api: 1, kind: 'tool' } })
    )
    await write('weather/index.js', plugin)
    const check = () => runSvc(['config', 'check'], { home: project.home, cwd: project.folder })
    expect(await check()).to.include({ code: 0 })
    for (const name of ['hello.ts', 'shared/value.ts', 'weather/index.js', 'weather/package.json']) {
      await chmod(project.at(name), 0o666)
      const { code, out, err } = await check()
      expect([code, (out + err).includes('PLUGIN_FOREIGN')], name).to.deep.equal([1, true])
      await chmod(project.at(name), 0o644)
    }
  })

  it('is not imported: a workflow that is code', async () => {
    await using project = await newProject({ workflows: { code: ['flows'] } })
    await mkdir(project.at('flows'))
    await writeFile(project.at('flows/x.js'), project.code)
    await chmod(project.at('flows/x.js'), 0o666)
    const { out } = await runSvc(['workflows', 'validate', 'x'], { home: project.home, cwd: project.folder })
    expect([project.ran(), out.includes('all users of this machine can write the file')], out).to.deep.equal([false, true])
    await rm(project.at('flows'), { recursive: true })
  })
})
