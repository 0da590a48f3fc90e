import { Command } from '@oclif/core'
class Hello extends Command { static summary = 'say hello'; async run() { this.log('hello') } }
export const COMMANDS = { hello: Hello }
