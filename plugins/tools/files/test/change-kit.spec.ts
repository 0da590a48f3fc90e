import { writeFile } from 'node:fs/promises'
import { type ToolSamples, toolKit } from '@svc/testing'
import { sample } from './support/files.ts'

const OUT = [{ path: '../x' }, { path: '/etc/x' }, { path: 'leak/x' }].map(args => ({ args, message: /outside/ }))
const withArguments = (more: object) => OUT.map(item => ({ ...item, args: { ...item.args, ...more } }))

const TOOLS: Record<string, ToolSamples> = {
  write_file: {
    good: [
      { args: { path: 'a.txt', content: 'new', overwrite: true } },
      { args: { path: 'x/y.txt', content: '', overwrite: true } },
    ],
    bad: [
      ...withArguments({ content: '' }),
      { args: { path: 'a.txt', content: 'x' }, message: /overwrite/ },
      { args: { path: 'notes', content: 'x' }, message: /directory/ },
      { args: { path: 'a.txt' } },
    ],
  },
  edit_file: {
    good: [{ args: { path: 'ab.txt', old_text: 'a', new_text: 'Aa' } }],
    bad: [
      ...withArguments({ old_text: 'a', new_text: 'b' }),
      { args: { path: 'a.txt', old_text: 'four', new_text: '4' }, message: /does not contain/ },
      { args: { path: 'a.txt', old_text: 'o', new_text: '0' }, message: /2 times/ },
      { args: { path: 'a.txt', old_text: '', new_text: '0' } },
      { args: { path: 'picture.png', old_text: 'a', new_text: '0' }, message: /binary/ },
    ],
  },
  find_files: {
    good: [{ args: { pattern: '*.txt' } }, { args: { pattern: '**', type: 'any', path: 'notes' } }],
    bad: [...withArguments({ pattern: '*' }), { args: { pattern: '{' }, message: /not a valid pattern/ }, { args: {} }],
  },
  move_file: {
    good: [{ args: { from: 'a.txt', to: 'new.txt' } }],
    bad: [
      { args: { from: 'a.txt', to: '../a.txt' }, message: /outside/ },
      { args: { from: 'a.txt', to: 'notes' }, message: /directory/ },
      { args: { from: 'none', to: 'b' }, message: /does not exist/ },
      { args: { from: 'a.txt' } },
    ],
  },
  delete_file: {
    good: [{ args: { path: 'new.txt' } }],
    bad: [...OUT, { args: { path: 'notes' }, message: /recursive/ }, { args: { path: '.' }, message: /a root of the tools/ }],
  },
}

// What is changed once cannot be changed again in the same way: these calls get a file of their own each.
let fresh = 0
const OWN = new Set(['move_file', 'delete_file'])

for (const [name, samples] of Object.entries(TOOLS))
  describe(`${name}, by the tool kit`, () => {
    const open = async () => {
      const files = await sample()
      await writeFile(files.at('root', 'ab.txt'), 'a')
      const tool = files.tool(name)
      const call: typeof tool.call = async (args, ctx) => {
        if (!OWN.has(name) || (args.path ?? args.to) !== 'new.txt') return tool.call(args, ctx)
        const own = `new-${++fresh}.txt`
        await writeFile(files.at('root', own), '')
        return tool.call(name === 'move_file' ? { from: own, to: `moved/${own}` } : { path: own }, ctx)
      }
      return { name, tool: { ...tool, call }, close: files.close }
    }
    for (const testCase of toolKit(open, samples)) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
  })
