"""The command `tokdfa`: `app` has the commands, `arguments` what several of them take; one file for each larger one."""
