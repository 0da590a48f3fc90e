import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { runCommand } from '@svc/cli/command'
import { pluginKit } from '@svc/testing'
import { SampleWord } from '../src/commands.ts'
import samples from './samples.ts'

// the kit of every plugin: manifest, command classes, leftovers
for (const testCase of await pluginKit(new URL('..', import.meta.url), samples)) test(testCase.title, testCase.run)

test('counts words', async () => deepEqual((await runCommand(SampleWord, ['one two', 'three'])).out, ['3 words']))
test('counts the words of each text', async () =>
  deepEqual((await runCommand(SampleWord, ['one two', 'three', '--each'])).out, ['2 words', '1 word']))
test('needs a text', () => rejects(runCommand(SampleWord), /Missing 1 required arg/))
