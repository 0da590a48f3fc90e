import { toolKit } from '@svc/testing'
import { sample } from './support/files.ts'

describe('read_file, by the tool kit', () => {
  const open = async () => {
    const files = await sample()
    return { name: 'read_file', tool: files.tool('read_file'), close: files.close }
  }
  const cases = toolKit(open, {
    good: [{ args: { path: 'a.txt' } }, { args: { path: './notes/../a.txt', offset: 2, limit: 1 } }],
    bad: [
      { args: { path: 'b.txt' }, message: /does not exist/ },
      { args: { path: 'notes' }, message: /list_directory/ },
      { args: { path: 'picture.png' }, message: /binary file of 5 bytes/ },
      { args: { path: 'leak.txt' }, message: /outside/ },
      { args: { path: '../beside/secret.txt' }, message: /outside/ },
      { args: { path: 'a\0.txt' }, message: /zero byte/ },
      { args: { path: 'x'.repeat(4000) }, message: /too long/ },
      { args: { path: '' } },
      { args: { path: 'a.txt', offset: 0 } },
      { args: {} },
    ],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})

describe('list_directory, by the tool kit', () => {
  const open = async () => {
    const files = await sample()
    return { name: 'list_directory', tool: files.tool('list_directory'), close: files.close }
  }
  const cases = toolKit(open, {
    good: [{ args: {} }, { args: { path: 'notes' } }],
    bad: [
      { args: { path: 'a.txt' }, message: /read_file/ },
      { args: { path: 'leak' }, message: /outside/ },
      { args: { path: 'leak/nothing' }, message: /outside/ },
      { args: { path: '..' }, message: /outside/ },
      { args: { path: 'nowhere' }, message: /does not exist/ },
      { args: { path: 1 } },
    ],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
