/** Run as a program: reads the stream of an inspector, and ends with the process that started it. */

import { get } from 'node:http'

get(`http://127.0.0.1:${process.argv[2]}/api/stream`, (answer) => {
  answer.resume().once('data', () => console.log('open'))
})
process.stdin.resume().on('end', () => process.exit())
