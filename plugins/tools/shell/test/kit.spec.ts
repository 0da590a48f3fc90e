import { toolKit } from '@svc/testing'
import { COMMANDS, openShell, withSandbox } from './support/shell.ts'

const outside = ['..', '/etc', 'leak', '/proc/self/root'].map(cwd => ({ args: { command: ['ls'], cwd }, message: /outside/ }))

withSandbox('run_command, by the tool kit', () => {
  const open = async () => ({ ...(await openShell()), name: 'run_command' })
  const cases = toolKit(open, {
    good: [
      { args: { command: ['cat', 'a.txt'] } },
      { args: { command: ['sh', '-c', 'cat; exit 3'], input: 'x', cwd: 'inner', timeout: 10 } },
    ],
    bad: [
      ...outside,
      {
        args: { command: ['rm', '-rf', '.'] },
        message: new RegExp(`"rm" is not an allowed program; use one of: ${COMMANDS.join(', ')}`),
      },
      { args: { command: ['/bin/sh', '-c', 'true'] }, message: /not an allowed program/ },
      { args: { command: ['echo', 'a\0b'] }, message: /zero byte/ },
      { args: { command: ['no-such-program'] }, message: /the program "no-such-program" was not found/ },
      { args: { command: ['ls'], cwd: 'nowhere' }, message: /does not exist/ },
      { args: { command: ['sleep', '1000'], timeout: 0.1 }, message: /exceeded its time limit of 0.1 s/ },
      { args: { command: [] } },
      { args: { command: 'ls' } },
      { args: { command: ['ls'], timeout: 0 } },
      { args: {} },
    ],
    slow: { args: { command: ['sh', '-c', 'trap "" TERM; sleep 1000'] } },
    concurrent: 4,
  })
  for (const testCase of cases) it(testCase.title, testCase.run)
})
